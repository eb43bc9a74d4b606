#!/bin/sh
# kubernetes-fluent-client 3.11.0 (npm; 3.11.11 builds addresses in the same way), compared with
# @kubernetes/client-node 1.4.0, whose reading of the kubeconfig it uses.
#
# Seen: of "server: https://rancher.test/k8s/clusters/c-1" in a kubeconfig the path is dropped: requests and watches
# go to https://rancher.test/api/v1/... (Only its Raw keeps the path.)
# Expected: the server's address as a prefix, as kubectl, client-go and the Node client use it.
# Who is hurt: whoever reaches clusters through a gateway with a path for each of them, as Rancher's: kubectl works, the
# program gets the gateway's 404 or sign-in page, or the objects of the cluster that is at the root.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetes-fluent-client@3.11.0 @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'

let path
const server = http.createServer((req, res) => {
  path = req.url
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] }))
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}/k8s/clusters/c-1`
writeFileSync('config', JSON.stringify({
  apiVersion: 'v1', kind: 'Config', 'current-context': 'c',
  clusters: [{ name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [{ name: 'u', user: { token: 't' } }],
}))
process.env.KUBECONFIG = 'config'
const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node')
const { K8s, kind } = await import('kubernetes-fluent-client')
const config = new KubeConfig()
config.loadFromDefault()
await config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace: 'n' })
console.log('client-node:                  ', path)
await K8s(kind.Pod).InNamespace('n').Get()
console.log('kubernetes-fluent-client Get: ', path)
await K8s(kind.Pod).Raw('/api/v1/namespaces/n/pods')
console.log('kubernetes-fluent-client Raw: ', path)
process.exit()
EOF
node main.mjs | tee out
cat >want <<'EOF'
client-node:                   /k8s/clusters/c-1/api/v1/namespaces/n/pods
kubernetes-fluent-client Get:  /api/v1/namespaces/n/pods
kubernetes-fluent-client Raw:  /k8s/clusters/c-1/api/v1/namespaces/n/pods
EOF
diff want out
