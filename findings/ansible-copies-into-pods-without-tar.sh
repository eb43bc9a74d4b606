#!/bin/sh
# kubernetes.core as in Debian 12's ansible 7.7.0: the module k8s_cp, a copy into a Pod, with python3-kubernetes 22.6.0 and a small server of ws 8.18.3 (npm).
#
# Seen: after its last write the module closes the connection and reports "successfully copied". The status of tar in the Pod, which comes last, is never read: an
# image without tar, a full disk and a read-only file system are all a success with changed: true. Only what tar has written to stderr by then is an error.
# Expected: the exit code of the remote command, which the server sends as a status on channel 3, as `kubectl cp` and the module k8s_exec read it.
# Who is hurt: playbooks that put configuration, certificates or dumps into Pods: in a minimal image nothing ever arrives, on a full disk half of the file does,
# and the play goes on.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . ws@8.18.3 >/dev/null
apt-get download ansible=7.7.0+dfsg-3+deb12u1 ansible-core=2.14.18-0+deb12u2 python3-jinja2 python3-markupsafe python3-packaging python3-kubernetes=22.6.0-2 \
  python3-dateutil python3-six python3-urllib3 python3-yaml python3-certifi python3-websocket python3-requests python3-charset-normalizer python3-idna \
  python3-chardet python3-google-auth python3-requests-oauthlib python3-oauthlib python3-cachetools python3-pyasn1 python3-pyasn1-modules python3-rsa \
  python3-pkg-resources >/dev/null 2>&1
dpkg-deb --fsys-tarfile ansible_*.deb | tar -x ./usr/lib/python3/dist-packages/ansible_collections/kubernetes
rm ansible_*.deb
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >server.mjs <<'END'
import { writeFileSync } from 'node:fs'
import { WebSocketServer } from 'ws'

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => 'v4.channel.k8s.io' }, () => {
  writeFileSync('address', `127.0.0.1:${server.address().port}`)
})
server.on('connection', (socket, request) => {
  const url = new URL(request.url, 'http://localhost')
  const command = url.searchParams.get('command')
  const end = (status, text) => {
    if (text) socket.send(Buffer.from(`\x02${text}`))
    socket.send(Buffer.from(`\x03${JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, ...status })}`))
    socket.close(1000)
  }
  const failure = (message) => ({ status: 'Failure', reason: 'InternalError', message })
  if (url.pathname.includes('/minimal/')) return end(failure(`exec: "${command}": executable file not found in $PATH`))
  if (command !== 'tar') return end(failure('command terminated with exit code 1'))
  let received = 0
  socket.on('message', (data) => {
    received += data.length - 1
    if (received < 10240) return
    if (url.pathname.includes('/good/')) end({ status: 'Success' })
    else end(failure('command terminated with exit code 2'), 'tar: settings: Cannot write: No space left on device\n')
  })
})
END
node server.mjs & server=$!
for _ in $(seq 600); do test -s address && break; sleep 0.1; done
cat >main.py <<'END'
from types import SimpleNamespace

from ansible_collections.kubernetes.core.plugins.module_utils.copy import K8SCopyToPod
from kubernetes import client


def fail(**result):
    raise SystemExit(f'failed: {result["msg"]}')


settings = client.Configuration()
settings.host = 'http://' + open('address').read().strip()
with open('settings', 'w') as file:
    file.write('x' * 5000)
for pod in 'good', 'minimal', 'full':
    params = {'pod': pod, 'namespace': 'default', 'local_path': 'settings', 'remote_path': '/etc/settings'}
    module = SimpleNamespace(check_mode=False, params={**{key: None for key in ('content', 'no_preserve', 'container')}, **params},
                             exit_json=lambda **result: print(f'{pod}:', result), fail_json=fail)
    K8SCopyToPod(module, SimpleNamespace(client=client.ApiClient(settings))).run()
END
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | tee out
cat >want <<'END'
good: {'changed': True, 'result': 'settings successfully copied into remote Pod into /etc/settings'}
minimal: {'changed': True, 'result': 'settings successfully copied into remote Pod into /etc/settings'}
full: {'changed': True, 'result': 'settings successfully copied into remote Pod into /etc/settings'}
END
diff want out
