#!/bin/sh
# patroni 3.0.2 of Debian 12, its own client of Kubernetes (patroni.utils.iter_response_objects; 4.1 has the same lines).
#
# Seen: the watch decodes each chunk of the response by itself. A chunk that ends inside of a character of more than one byte is a
# UnicodeDecodeError, which ends the watch; Patroni lists again and watches again. A chunk that ends between characters is fine.
# Expected: chunks say nothing about the content (RFC 9112); a proxy may cut anywhere, and servers cut at 4, 16 or 32 KiB.
# Who is hurt: clusters whose Pods have a single "ü" in an environment variable or an annotation, behind a proxy: Patroni does
# not see the change that was in the event until it has listed again, logs errors in a loop, and lists the more, the more changes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download patroni=3.0.2-1 python3-dateutil python3-six python3-urllib3 python3-yaml python3-psutil >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.py <<'EOF'
import http.server
import json
import threading

import urllib3
from patroni.utils import iter_response_objects

EVENT = json.dumps({'type': 'MODIFIED', 'object': {'metadata': {'name': 'db-0', 'annotations': {'owner': 'Jürgen'}}}},
                   ensure_ascii=False).encode() + b'\n'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        cut = EVENT.index('ü'.encode()) + int(self.path[1:])
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for piece in EVENT[:cut], EVENT[cut:], b'':
            self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for cut, where in enumerate(('before', 'inside of', 'after')):
    response = urllib3.PoolManager().request('GET', f'http://127.0.0.1:{server.server_port}/{cut}', preload_content=False)
    try:
        result = [event['object']['metadata']['annotations']['owner'] for event in iter_response_objects(response)]
    except Exception as e:
        result = f'{type(e).__name__}: {e.reason}'
    print(f'a chunk ends {where} the character: {result}')
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'EOF'
a chunk ends before the character: ['Jürgen']
a chunk ends inside of the character: UnicodeDecodeError: unexpected end of data
a chunk ends after the character: ['Jürgen']
EOF
diff want out
