#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python: logs of Pods and answers through the proxies.
#
# Seen: a log, or an answer of a proxied service, that happens to be JSON is parsed and written again as Python writes it: {"ok": true}
# is "{'ok': True}", 1.10 is "1.1", 1e3 is "1000.0", null is None and no text at all. A log of two lines of JSON is left alone.
# Expected: the text of the log; the method is declared to return one.
# Who is hurt: programs that read a Job's result from its log: json.loads fails for what the Job printed as JSON, and a version or
# a decimal number is another one. It works in the test whose log has a second line.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import http.server
import threading

from kubernetes import client

BODIES = [b'{"ok": true}\n', b'1.10\n', b'1e3\n', b'null\n', b'"done"\n', b'{"ok": true}\n{"ok": true}\n']


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain')
        self.end_headers()
        self.wfile.write(BODIES[int(self.path.split('/')[6][1:])])

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
settings = client.Configuration()
settings.host = f'http://127.0.0.1:{server.server_port}'
api = client.CoreV1Api(client.ApiClient(settings))
for number, body in enumerate(BODIES):
    log = api.read_namespaced_pod_log(name=f'p{number}', namespace='b')
    proxied = api.connect_get_namespaced_service_proxy(name=f'p{number}', namespace='b')
    print(f'{body.decode()!r}: log {log!r}, proxy {proxied!r}')
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
'{"ok": true}\n': log "{'ok': True}", proxy "{'ok': True}"
'1.10\n': log '1.1', proxy '1.1'
'1e3\n': log '1000.0', proxy '1000.0'
'null\n': log None, proxy None
'"done"\n': log 'done', proxy 'done'
'{"ok": true}\n{"ok": true}\n': log '{"ok": true}\n{"ok": true}\n', proxy '{"ok": true}\n{"ok": true}\n'
EOF
diff want out
