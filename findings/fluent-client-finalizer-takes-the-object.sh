#!/bin/sh
# kubernetes-fluent-client 3.11.0 (npm; the client below Pepr; 3.11.11 sends the same).
#
# Seen: Finalize("remove", name) reads the object and sends all of it back as a server-side apply with force=true: labels,
# spec and status, without uid and resourceVersion, with the remaining finalizers.
# Expected: a change of metadata.finalizers for the object that was read, as "to add or remove a finalizer" promises.
# Who is hurt: every object that is handled so. The manager "pepr" owns each of its fields from then on, so that a
# GitOps tool that drops a label or a field from its manifest no longer removes it; a value that changed between the
# read and the apply is set back; and if the object ended in that time, which is when finalizers are removed, the apply
# creates it again.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetes-fluent-client@3.11.0 >/dev/null
cat >main.mjs <<'EOF'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'

const deployment = {
  apiVersion: 'apps/v1', kind: 'Deployment',
  metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '7', labels: { app: 'a' }, finalizers: ['example.com/a', 'example.com/b'] },
  spec: { replicas: 3 }, status: { replicas: 3 },
}
const server = http.createServer(async (req, res) => {
  let text = ''
  for await (const part of req) text += part
  if (req.method !== 'GET') console.log(req.method, req.url, req.headers['content-type'], text)
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(deployment))
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}`
writeFileSync('config', JSON.stringify({
  apiVersion: 'v1', kind: 'Config', 'current-context': 'c',
  clusters: [{ name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [{ name: 'u', user: { token: 't' } }],
}))
process.env.KUBECONFIG = 'config'
const { K8s, kind } = await import('kubernetes-fluent-client')
await K8s(kind.Deployment).InNamespace('n').Finalize('remove', 'example.com/a', 'a')
process.exit()
EOF
node main.mjs | tee out
cat >want <<'EOF'
PATCH /apis/apps/v1/namespaces/n/deployments/a?fieldManager=pepr&fieldValidation=Strict&force=true application/apply-patch+yaml {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","labels":{"app":"a"},"finalizers":["example.com/b"]},"spec":{"replicas":3},"status":{"replicas":3}}
EOF
diff want out
