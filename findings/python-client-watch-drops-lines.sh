#!/bin/sh
# python3-kubernetes 22.6.0 of Debian 12, the official client in Python, its Watch.
#
# Seen, 1: of a followed log, Watch leaves out each empty line, and the last line if the container ended without a newline.
# Expected: the lines of the log, as the same client's read without Watch returns them.
# Who is hurt: programs that wait for a Job's result: what a process prints last, often without a newline, is what
# they wait for. YAML or Markdown that a Job prints is another text without its empty lines.
#
# Seen, 2: with allow_watch_bookmarks the bookmarks arrive, and are not used: when the server ends the watch, the next
# request names the version of the last object, or the one from the start, and not the one of the bookmark.
# Expected: the version of the bookmark; nothing else is what a bookmark is for.
# Who is hurt: watches of quiet resources, which asked for bookmarks so that they do not have to list again: after some
# minutes the version is compacted, and the loop ends with a 410 that the bookmark was there to avoid.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-kubernetes=22.6.0-2 python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi \
  python3-websocket python3-requests python3-charset-normalizer python3-idna python3-chardet python3-google-auth \
  python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa \
  python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import http.server
import json
import threading
import urllib.parse

from kubernetes import client, watch

LOG = [b'result:\n\n', b'  text: |\n\n    a\n', b'done']
BOOKMARK = {'type': 'BOOKMARK', 'object': {'kind': 'ConfigMap', 'apiVersion': 'v1', 'metadata': {'resourceVersion': '5000'}}}
ADDED = {'type': 'ADDED', 'object': {'kind': 'ConfigMap', 'apiVersion': 'v1', 'metadata': {'name': 'a', 'resourceVersion': '7000'}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    watches = 0

    def do_GET(self):
        pieces = LOG
        if '/log' not in self.path:
            version = urllib.parse.parse_qs(self.path.partition('?')[2])['resourceVersion'][0]
            print(f'watch from version {version}')
            pieces = [json.dumps([BOOKMARK, ADDED][Handler.watches]).encode() + b'\n']
            Handler.watches += 1
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for piece in pieces + [b'']:
            self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
settings = client.Configuration()
settings.host = f'http://127.0.0.1:{server.server_port}'
client.Configuration.set_default(settings)
api = client.CoreV1Api()
print('read: ', api.read_namespaced_pod_log(name='a', namespace='b').split('\n'))
print('Watch:', list(watch.Watch().stream(api.read_namespaced_pod_log, name='a', namespace='b')))
changes = watch.Watch()
for event in changes.stream(api.list_namespaced_config_map, namespace='b', resource_version='7', allow_watch_bookmarks=True):
    print(event['type'], event['raw_object']['metadata']['resourceVersion'])
    if event['type'] == 'ADDED':
        changes.stop()
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
read:  ['result:', '', '  text: |', '', '    a', 'done']
Watch: ['result:', '  text: |', '    a']
watch from version 7
BOOKMARK 5000
watch from version 7
ADDED 7000
EOF
diff want out
