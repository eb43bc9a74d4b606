#!/bin/sh
# kubernetes-client 9.0.0 (npm, GoDaddy's client for Node), its watch (getObjectStream).
#
# Seen, 1: the status of a watch's response is not read. A 403 or a 410 arrives as an object of the stream, the Status, without a
# type, and the stream ends without an error, as a watch does whose time is over.
# Seen, 2: an event whose newline comes in the next piece of the response is delivered twice.
# Seen, 3: for a watch the exec plugin of the kubeconfig is never run; for other requests it runs after a 401 or 403 only, with
# its arguments joined and cut at blanks. A first request that anonymous users may send is sent as anonymous.
# Expected: an error of the stream, one event, and the plugin before the first request, with its arguments.
# Who is hurt: controllers on it: a watch that is refused looks like a quiet one that is renewed in a loop, a created object is
# handled twice, and with a cloud's plugin a watch before the first list is refused for ever.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . kubernetes-client@9.0.0 >/dev/null 2>&1
cat >plugin <<'EOF'
#!/bin/sh
echo "plugin, $# arguments" >>ran
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
EOF
chmod +x plugin
cat >main.js <<'EOF'
const fs = require('fs')
const http = require('http')
const { Client1_13, KubeConfig } = require('kubernetes-client')
const Request = require('kubernetes-client/backends/request')

const server = http.createServer((request, response) => {
  const refuse = (code) => {
    response.writeHead(code, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: 'refused' }) + '\n')
  }
  if (request.url.includes('/namespaces/twice/')) {
    response.write(JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a' } } }))
    return setTimeout(() => response.end('\n'), 300)
  }
  refuse(request.url.includes('/namespaces/gone/') ? 410 : request.headers.authorization ? 403 : 401)
})
server.listen(0, '127.0.0.1', async () => {
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromString(JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${server.address().port}` } }],
    users: [{ name: 'u', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin', args: ['--role', 'read only'] } } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  }))
  const client = new Client1_13({ backend: new Request({ kubeconfig }) })
  for (const namespace of ['refused', 'gone', 'twice']) {
    const stream = await client.api.v1.watch.namespaces(namespace).pods.getObjectStream()
    let error
    stream.on('error', (e) => { error = e })
    for await (const object of stream) console.log(`watch ${namespace}: type ${object.type}, ${object.kind ?? object.object.metadata.name} ${object.code ?? ''}`.trim())
    console.log(`watch ${namespace}: ended, error ${error}`)
  }
  console.log('after the watches:', fs.existsSync('ran') ? 'the plugin ran' : 'the plugin did not run')
  await client.api.v1.namespaces('refused').pods.get().catch((e) => console.log('list:', e.code))
  console.log('after the list:', fs.readFileSync('ran', 'utf8').trim())
  server.close()
  server.closeAllConnections()
})
EOF
node --no-deprecation main.js 2>/dev/null | tee out
cat >want <<'EOF'
watch refused: type undefined, Status 401
watch refused: ended, error undefined
watch gone: type undefined, Status 410
watch gone: ended, error undefined
watch twice: type ADDED, a
watch twice: type ADDED, a
watch twice: ended, error undefined
after the watches: the plugin did not run
list: 403
after the list: plugin, 3 arguments
EOF
diff want out
