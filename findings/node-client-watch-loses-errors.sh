#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), its Watch and makeInformer.
#
# Seen: an exception that the callback of a Watch throws is lost: "ignore parse errors" catches it
# with those of JSON.parse, no error handler runs, and the watch goes on with the next event. The same
# exception in the handler of an informer is an unhandled rejection, which ends the process.
# Expected: one rule: the error comes to the done callback, or to the error handler of the informer.
# Who is hurt: operators in TypeScript: a TypeError over a missing field looks like an
# event that never came, and the same code behind an informer takes the operator down.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { createServer } from 'node:http'
import { KubeConfig, Watch, makeInformer } from '@kubernetes/client-node'
const event = (name) => JSON.stringify({ type: 'ADDED', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion: '2' } } }) + '\n'
const server = createServer((_, response) => {
  response.setHeader('Content-Type', 'application/json')
  response.write(event('first'))
  setTimeout(() => response.end(event('second')), 200)
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))
const config = new KubeConfig()
config.loadFromOptions({
  clusters: [{ name: 'c', server: `http://127.0.0.1:${server.address().port}`, skipTLSVerify: true }], users: [{ name: 'u' }],
  contexts: [{ name: 'x', cluster: 'c', user: 'u' }], currentContext: 'x',
})
const fails = (kind) => (object) => {
  console.log(`${kind}: ${object.metadata.name}`)
  if (object.metadata.name === 'first') throw new TypeError('of the handler')
}
await new Promise((done) => new Watch(config).watch('/api/v1/configmaps', {}, (_, object) => fails('watch')(object), (error) => {
  console.log('watch ends, error:', error)
  done()
}))
process.on('unhandledRejection', (error) => {
  console.log('unhandled rejection:', error.message)
  process.exit()
})
const informer = makeInformer(config, '/api/v1/configmaps', async () => ({ metadata: { resourceVersion: '1' }, items: [] }))
informer.on('add', fails('informer'))
informer.on('error', (error) => console.log('informer, error:', error))
await informer.start()
EOF
node main.mjs | tee out
cat >want <<'EOF'
watch: first
watch: second
watch ends, error: null
informer: first
unhandled rejection: of the handler
EOF
diff want out
