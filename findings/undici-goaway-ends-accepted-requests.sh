#!/bin/sh
# undici 7.30.2 (npm, the newest for Node 20) with allowH2; got 14.6.6 and axios 1.21.1 over HTTP/2.
#
# Seen: a server that drains a connection sends GOAWAY with NO_ERROR and the number of the last stream that it
# will finish. undici closes the connection at once: each request under way fails, though its stream is one of
# those. Answers that have begun are cut off, and writes that the server completes are reported as errors. got
# and axios, on Node's own http2, read the same answers to their end.
# Expected: RFC 9113, section 6.8: streams up to that number may still complete; the client opens no new ones.
# Who is hurt: clients of API servers that spread their load by GOAWAY (kube-apiserver --goaway-chance) or are
# restarted gracefully: a list fails half way, a watch ends, a create is an error and has happened; the more
# careful the server is, the more of it they see. (It is mended in undici 8, which needs Node 22.)
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . undici@7.30.2 got@14.6.6 axios@1.21.1 >/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout key -out cert \
	-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
cat >main.mjs <<'EOF'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import axios from 'axios'
import got from 'got'
import { Client } from 'undici'

const ca = readFileSync('cert')
const server = http2.createSecureServer({ key: readFileSync('key'), cert: ca })
server.on('session', (session) => session.on('error', () => {}))
let finished = 0
server.on('stream', (stream) => {
  stream.on('error', () => {})
  stream.respond({ ':status': 201 })
  stream.write('begun, ')
  setTimeout(() => stream.session.goaway(http2.constants.NGHTTP2_NO_ERROR, stream.id), 200)
  setTimeout(() => {
    finished++
    stream.end('finished')
  }, 600)
})
server.listen(0, 'localhost')
await once(server, 'listening')
const url = `https://localhost:${server.address().port}/`
const clients = {
  got: () => got.post(url, { http2: true, https: { certificateAuthority: ca }, retry: { limit: 0 } }).then((r) => `${r.statusCode} ${r.body}`),
  axios: () => axios.post(url, '{}', { httpVersion: 2, http2Options: { ca } }).then((r) => `${r.status} ${r.data}`),
  undici: async () => {
    const client = new Client(url, { allowH2: true, connect: { ca } })
    const answer = await client.request({ method: 'POST', path: '/', body: '{}' })
    return `${answer.statusCode} ${await answer.body.text()}`
  },
}
for (const [name, post] of Object.entries(clients)) {
  const before = finished
  const result = await post().catch((e) => e.message)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  console.log(`${name}: ${result}; finished by the server: ${finished - before}`)
}
process.exit()
EOF
node main.mjs | tee out
cat >want <<'EOF'
got: 201 begun, finished; finished by the server: 1
axios: 201 begun, finished; finished by the server: 1
undici: HTTP/2: "GOAWAY" frame received with code 0; finished by the server: 1
EOF
diff want out
