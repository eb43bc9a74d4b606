#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python, its reading of a kubeconfig.
#
# Seen, 1: an exec plugin that fails is a line in the log; the request is sent without credentials.
# Seen, 2: a token of an exec plugin that lives for five minutes or less is taken for expired at once: the plugin runs before each request.
# Seen, 3: a tokenFile is read once; the file's later content is not.
# Expected: an error that names the plugin, one run for as long as the token lives, and the file again, as client-go does.
# Who is hurt: scripts see a 403 for system:anonymous, or a list that anonymous users may read, and not that a login is due; with
# tokens of five minutes each request starts a process and asks the cloud; an hour after the start all requests are 401.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import datetime
import http.server
import json
import logging
import os
import threading

from kubernetes import client, config

logging.disable(logging.CRITICAL)
seen = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append(self.headers.get('authorization'))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}')

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def use(user):
    settings = client.Configuration()
    json.dump({
        'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'x',
        'clusters': [{'name': 'c', 'cluster': {'server': f'http://127.0.0.1:{server.server_port}'}}],
        'users': [{'name': 'u', 'user': user}],
        'contexts': [{'name': 'x', 'context': {'cluster': 'c', 'user': 'u'}}],
    }, open('config', 'w'))
    config.load_kube_config('config', client_configuration=settings)
    seen.clear()
    return client.CoreV1Api(client.ApiClient(settings))


def plugin(script):
    return {'exec': {'apiVersion': 'client.authentication.k8s.io/v1', 'command': '/bin/sh', 'args': ['-c', script]}}


use(plugin('echo "the login has expired" >&2; exit 1')).list_namespaced_pod('n')
print('plugin that fails:', seen)

for minutes in 4, 60:
    expires = (datetime.datetime.utcnow() + datetime.timedelta(minutes=minutes)).strftime('%Y-%m-%dT%H:%M:%SZ')
    credential = json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',
                             'status': {'token': 't', 'expirationTimestamp': expires}})
    here = os.getcwd()
    open('ran', 'w').close()
    api = use(plugin(f"echo >>'{here}/ran'; echo '{credential}'"))
    for _ in range(3):
        api.list_namespaced_pod('n')
    print(f'token of {minutes} minutes, 3 requests: the plugin ran {len(open("ran").readlines())} times')

open('token', 'w').write('first')
api = use({'tokenFile': os.path.abspath('token')})
api.list_namespaced_pod('n')
open('token', 'w').write('second')
api.list_namespaced_pod('n')
print('tokenFile:', seen)
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
plugin that fails: [None]
token of 4 minutes, 3 requests: the plugin ran 4 times
token of 60 minutes, 3 requests: the plugin ran 1 times
tokenFile: ['Bearer first', 'Bearer first']
EOF
diff want out
