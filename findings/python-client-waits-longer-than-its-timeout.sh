#!/bin/sh
# python3-kubernetes 22.6.0 with urllib3 1.26.12 of Debian 12, the official client in Python.
#
# Seen: a GET, PUT or DELETE that the server answers with 429 and Retry-After is sent four times. The client sleeps in between for as
# long as the server says, whatever _request_timeout says, and reports the 429 after the last one. A POST or PATCH is sent once and
# reported at once.
# Expected: a call that ends by its timeout, and one rule for all methods that the documentation names.
# Who is hurt: controllers on a busy server, which answers 429 by priority and fairness: a loop that gave a call one second stands
# for minutes and loses its lease; and while reads look slow, patches, which most controllers write with, fail at the first 429.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import http.server
import threading
import time

from kubernetes import client

seen = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        seen.append(self.command)
        self.rfile.read(int(self.headers.get('content-length') or 0))
        body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}'
        self.send_response(429)
        self.send_header('Retry-After', '2')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = do_POST = do_PATCH = answer

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
settings = client.Configuration()
settings.host = f'http://127.0.0.1:{server.server_port}'
api = client.CoreV1Api(client.ApiClient(settings))
for name, call in (
    ('GET', lambda: api.read_namespaced_pod('a', 'b', _request_timeout=1)),
    ('PUT', lambda: api.replace_namespaced_config_map('a', 'b', {}, _request_timeout=1)),
    ('POST', lambda: api.create_namespaced_config_map('b', {}, _request_timeout=1)),
    ('PATCH', lambda: api.patch_namespaced_config_map('a', 'b', {}, _request_timeout=1)),
):
    seen.clear()
    start = time.monotonic()
    try:
        call()
    except Exception as e:
        took = 'more than 5 s' if time.monotonic() - start > 5 else 'less'
        print(f'{name}, timeout 1 s: {len(seen)} requests, {took}, status {e.status}')
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
GET, timeout 1 s: 4 requests, more than 5 s, status 429
PUT, timeout 1 s: 4 requests, more than 5 s, status 429
POST, timeout 1 s: 1 requests, less, status 429
PATCH, timeout 1 s: 1 requests, less, status 429
EOF
diff want out
