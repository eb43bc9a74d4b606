#!/bin/sh
# python3-kubernetes 22.6.0 with urllib3 1.26.12 of Debian 12, kubernetes.leaderelection.
#
# Seen: renew_deadline ends the leadership only if the server answers with an error. If it refuses connections, run() ends with urllib3's MaxRetryError and
# onstopped_leading is not called. If it is silent, the request waits without a limit, and nothing happens at all. In both cases the thread of
# onstarted_leading goes on while another candidate has the lease.
# Expected: onstopped_leading after renew_deadline at the latest, as in client-go: that is the deadline's purpose.
# Who is hurt: operators in Python with more than one replica: cut off from the API server, as by a dead node of the control plane, the old leader goes on
# with what it does elsewhere (databases, clouds) beside the new one. Tests that stop the server see an exception, and those with errors see it work.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import http.server
import json
import os
import sys
import threading
import time

from kubernetes import client
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

failure = sys.argv[1]
broken = threading.Event()
mutex = threading.Lock()
kept = {}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get('content-length') or 0))
        if broken.is_set() and self.server is first_server:
            if failure == 'silent':
                time.sleep(60)
                return
            return self.send(500, {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'code': 500})
        with mutex:
            if self.command in ('POST', 'PUT'):
                kept['object'] = json.loads(body)
                kept['object']['metadata']['resourceVersion'] = str(time.monotonic_ns())
            if 'object' in kept:
                return self.send(200, kept['object'])
        self.send(404, {'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure', 'code': 404})

    def send(self, code, answer):
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *args):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


first_server, second_server = serve(), serve()
leading, stopped, ended = set(), {'first': threading.Event(), 'second': threading.Event()}, {}


def candidate(name, server):
    settings = client.Configuration()
    settings.host = f'http://127.0.0.1:{server.server_port}'
    lock = ConfigMapLock('lock', 'default', name)
    lock.api_instance = client.CoreV1Api(client.ApiClient(settings))

    def lead():
        leading.add(name)
        stopped[name].wait()
        leading.discard(name)

    def run():
        try:
            leaderelection.LeaderElection(electionconfig.Config(lock, lease_duration=4, renew_deadline=3, retry_period=1,
                                                                onstarted_leading=lead, onstopped_leading=stopped[name].set)).run()
            ended[name] = 'run() returned'
        except Exception as e:
            ended[name] = f'run() raised {type(e).__name__}'

    threading.Thread(target=run, daemon=True).start()


def wait(name):
    deadline = time.monotonic() + 30
    while name not in leading and time.monotonic() < deadline:
        time.sleep(0.1)


candidate('first', first_server)
wait('first')
time.sleep(2)
broken.set()
if failure == 'refused':
    first_server.shutdown()
    first_server.server_close()
candidate('second', second_server)
wait('second')
time.sleep(3)
print(f'server {failure}: {ended.get("first", "run() waits")}, onstopped_leading called: {stopped["first"].is_set()}, leaders: {sorted(leading)}', flush=True)
os._exit(0)
EOF
for failure in 500 refused silent; do
  PYTHONPATH=usr/lib/python3/dist-packages timeout 60 /usr/bin/python3 -W ignore main.py $failure 2>log
done | tee out
cat >want <<'EOF'
server 500: run() returned, onstopped_leading called: True, leaders: ['second']
server refused: run() raised MaxRetryError, onstopped_leading called: False, leaders: ['first', 'second']
server silent: run() waits, onstopped_leading called: False, leaders: ['first', 'second']
EOF
diff want out
