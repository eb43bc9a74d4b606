#!/bin/sh
# kubernetesjs 0.7.4 (npm), a typed client of the whole API for browsers and Node.
#
# Seen: PUT and PATCH are sent without a body: each replace and each patch of an object arrives empty. The query of every
# method but GET is dropped, so that a create with dryRun=All creates, a delete with dryRun=All deletes, and
# propagationPolicy is lost; and a list over all namespaces drops its labelSelector.
# Expected: the body and the query that the typed parameters of each method ask for.
# Who is hurt: whoever rehearses: the dry run is the real request. And whoever narrows a list over all namespaces by
# labels and works on what comes back: that is every object. Reads and plain creates work, so a first try passes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetesjs@0.7.4 >/dev/null
cat >main.mjs <<'EOF'
import { createServer } from 'node:http'
import kubernetes from 'kubernetesjs'

const server = createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  console.log(request.method, request.url, body === '' ? '(no body)' : body)
  response.setHeader('Content-Type', 'application/json')
  response.end('{}')
}).listen(0, '127.0.0.1', async () => {
  const client = new kubernetes.KubernetesClient({ restEndpoint: `http://127.0.0.1:${server.address().port}` })
  const path = { namespace: 'a', name: 'b' }
  const body = { metadata: { name: 'b' }, data: { k: 'v' } }
  const query = { dryRun: 'All' }
  await client.createCoreV1NamespacedConfigMap({ path, query, body })
  await client.replaceCoreV1NamespacedConfigMap({ path, query, body })
  await client.patchCoreV1NamespacedConfigMap({ path, query, body })
  await client.deleteCoreV1NamespacedConfigMap({ path, query: { dryRun: 'All', propagationPolicy: 'Orphan' }, body: {} })
  await client.listCoreV1NamespacedConfigMap({ path, query: { labelSelector: 'app=a' } })
  await client.listCoreV1ConfigMapForAllNamespaces({ query: { labelSelector: 'app=a' } })
  server.close()
})
EOF
node main.mjs | tee out
cat >want <<'EOF'
POST /api/v1/namespaces/a/configmaps {"metadata":{"name":"b"},"data":{"k":"v"}}
PUT /api/v1/namespaces/a/configmaps/b (no body)
PATCH /api/v1/namespaces/a/configmaps/b (no body)
DELETE /api/v1/namespaces/a/configmaps/b (no body)
GET /api/v1/namespaces/a/configmaps?labelSelector=app%3Da (no body)
GET /api/v1/configmaps (no body)
EOF
diff want out
