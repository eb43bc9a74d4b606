#!/bin/sh
# python3-etcd3gw 2.0.0 of Debian 12 (OpenStack's client for etcd's HTTP gateway), with etcd 3.4.23 of Debian 12.
#
# Seen, 1: get_all() encodes its first key in base64 twice, so that the range begins at the text "AA==". Keys that begin with "/", "-", "." or
# a digit sort below it and are missing: of Kubernetes' keys, "/registry/...", there is none. get_prefix("/") finds them.
# Expected: all keys, as the method's documentation promises.
# Who is hurt: backups and checks of a cluster's store by get_all(): an empty answer, or a part of the keys, and no error.
#
# Seen, 2: a watch ends in silence after the first event of more than 2 KB. The gateway sends the newline after such a message as an HTTP chunk
# of its own, the client decodes each chunk as JSON, and the exception ends its thread. The event itself arrives, the next ones never do.
# Expected: all events, or an exception where the events are read.
# Who is hurt: services that follow configuration in etcd: they work until one value is larger, and then hold old values until the restart.
set -eu
dir=$(mktemp -d); etcd=; trap 'kill "$etcd" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-etcd3gw=2.0.0-2 python3-futurist python3-greenlet python3-pbr python3-pkg-resources python3-six python3-requests python3-urllib3 \
  python3-certifi python3-charset-normalizer python3-idna python3-chardet etcd-server=3.4.23-4+b4 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
e=${FINDING_PORT:-23790} peers=$((${FINDING_PORT:-23790} + 1))
usr/bin/etcd --data-dir data --listen-client-urls "http://127.0.0.1:$e" --advertise-client-urls "http://127.0.0.1:$e" \
  --listen-peer-urls "http://127.0.0.1:$peers" --initial-advertise-peer-urls "http://127.0.0.1:$peers" \
  --initial-cluster "default=http://127.0.0.1:$peers" >etcd.log 2>&1 & etcd=$!
cat >main.py <<'EOF'
import os
import sys
import threading
import time

from etcd3gw.client import Etcd3Client

client = Etcd3Client(host='127.0.0.1', port=int(sys.argv[1]), api_path='/v3/')
for _ in range(600):
    try:
        client.status()
        break
    except Exception:
        time.sleep(0.1)
for key in ('/registry/pods/a/b', '-', '.well-known', '0', '2026-11-30', 'ABC', 'registry'):
    client.put(key, 'value')
print('get_all:', [metadata['key'].decode() for _, metadata in client.get_all()])
print('get_prefix("/"):', [metadata['key'].decode() for _, metadata in client.get_prefix('/')])

events = []


def follow():
    iterator, _ = client.watch('/watched')
    for event in iterator:
        events.append(len(event['kv']['value']))


threading.Thread(target=follow, daemon=True).start()
time.sleep(3)
for size in (1, 1000, 5000, 2, 3):
    client.put('/watched', 'x' * size)
    time.sleep(1)
print('sizes of the values put: 1, 1000, 5000, 2, 3; events:', events, flush=True)
os._exit(0)
EOF
PYTHONPATH=usr/lib/python3/dist-packages timeout 60 /usr/bin/python3 -W ignore main.py "$e" 2>log | tee out
cat >want <<'EOF'
get_all: ['ABC', 'registry']
get_prefix("/"): ['/registry/pods/a/b']
sizes of the values put: 1, 1000, 5000, 2, 3; events: [1, 1000, 5000]
EOF
diff want out
