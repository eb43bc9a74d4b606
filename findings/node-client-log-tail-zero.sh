#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), its Log.
#
# Seen: tailLines: 0 is left out of the request, so that a log that is followed from now on comes whole, and the value of
# follow is sent as pretty, too. If the connection breaks in the middle of a log, the stream neither ends nor fails. A
# connection that is refused is reported as an answer of the server: an ApiException with code 500, without a cause.
# Expected: tailLines=0, as kubectl logs --tail=0 sends it; an error on the stream; the network's own error.
# Who is hurt: dashboards and bots that pass on new lines only: after each restart they repeat everything. A program that
# awaits the end of a log waits for ever after a broken connection, and one that tries again after errors of the network,
# and not after a 500, gives up.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { createServer } from 'node:http'
import { PassThrough } from 'node:stream'
import { KubeConfig, Log } from '@kubernetes/client-node'

const log = (port, options, stream) => {
  const config = new KubeConfig()
  config.loadFromClusterAndUser({ name: 'a', server: `http://127.0.0.1:${port}`, skipTLSVerify: true }, { name: 'u' })
  return new Log(config).log('ns', 'pod', 'main', stream ?? new PassThrough().resume(), options)
}
let broken
const server = createServer((request, response) => {
  console.log(request.url)
  if (!broken) return response.end()
  response.write('one line\n')
  setTimeout(() => response.destroy(), 100)
}).listen(0, '127.0.0.1', async () => {
  const { port } = server.address()
  await log(port, { follow: true, tailLines: 0 })
  broken = true
  const stream = new PassThrough()
  const seen = []
  for (const event of ['data', 'end', 'finish', 'close', 'error']) stream.on(event, () => seen.push(event))
  process.on('uncaughtException', (e) => seen.push(`uncaught ${e.message}`))
  await log(port, { tailLines: 1 }, stream)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  console.log('events of the stream:', seen.join(', '))
  server.close()
  server.closeAllConnections()
  await log(port, {}).catch((e) => console.log('refused:', e.constructor.name, e.code, e.cause))
})
EOF
node main.mjs | tee out
cat >want <<'EOF'
/api/v1/namespaces/ns/pods/pod/log?container=main&follow=true&pretty=true&previous=false&timestamps=false
/api/v1/namespaces/ns/pods/pod/log?container=main&follow=false&pretty=false&previous=false&tailLines=1&timestamps=false
events of the stream: data
refused: ApiException 500 undefined
EOF
diff want out
