#!/bin/sh
# @dot-i/k8s-operator 1.3.9 (npm), a library for operators in Node.
#
# Seen: handleResourceFinalizer writes the finalizers that the event had, plus its own, as a merge patch without
# a resourceVersion: a finalizer that another operator has added since the event is gone. It returns true in any case: a 403
# or a 500 goes to the log alone, which is off by default, and the event counts as handled.
# Expected: "if the resource doesn't have your finalizer set yet, it will be added": a change of its own entry
# only, or one that fails if the object has changed; and an error if it was not written.
# Who is hurt: resources with two operators, which both see a new object at the same moment: one of the finalizers
# is lost, and with it its clean-up if the object is deleted soon. Where the role lacks "patch", no object ever has the
# finalizer, and what the operator has made outside of the cluster stays after each deletion.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @dot-i/k8s-operator@1.3.9 >/dev/null
cat >main.mjs <<'EOF'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import library from '@dot-i/k8s-operator'

const stored = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'ns', resourceVersion: '1' } }
let refuse = false
const server = createServer(async (request, response) => {
  if (request.method === 'GET') // the watch
    return response.write(JSON.stringify({ type: 'ADDED', object: stored }) + '\n')
  let body = ''
  for await (const piece of request) body += piece
  console.log(request.method, request.headers['content-type'], body, refuse ? '403' : '200')
  if (!refuse) Object.assign(stored.metadata, JSON.parse(body).metadata)
  response.writeHead(refuse ? 403 : 200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(stored))
}).listen(0, '127.0.0.1', async () => {
  const server = `http://127.0.0.1:${serverPort()}`
  writeFileSync('config', JSON.stringify({
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }))
  process.env.KUBECONFIG = 'config'
  class Operator extends library.default {
    async init() {
      await this.watchResource('', 'v1', 'configmaps', async (event) => {
        // the other operator, which has seen the same event, was faster
        stored.metadata.finalizers = ['other.test/cleanup']
        const handled = await this.handleResourceFinalizer(event, 'mine.test/cleanup', async () => {})
        console.log('handled:', handled, 'finalizers:', stored.metadata.finalizers.join())
        refuse = true
        delete event.object.metadata.finalizers
        console.log('handled:', await this.handleResourceFinalizer(event, 'mine.test/cleanup', async () => {}))
        process.exit(0)
      })
    }
  }
  await new Operator().start()
})
const serverPort = () => server.address().port
EOF
node main.mjs | tee out
cat >want <<'EOF'
PATCH application/merge-patch+json {"metadata":{"finalizers":["mine.test/cleanup"]}} 200
handled: true finalizers: mine.test/cleanup
PATCH application/merge-patch+json {"metadata":{"finalizers":["mine.test/cleanup"]}} 403
handled: true
EOF
diff want out
