#!/bin/sh
# http-proxy 1.18.1, http-proxy-middleware 3.0.11, express-http-proxy 2.1.2, http-proxy-3 1.23.3, httpxy 0.5.6, http2-proxy 5.0.53 and @fastify/http-proxy 11.6.3
# (npm) in front of a Kubernetes API.
#
# Seen: a request with the header Impersonate-Group twice, as kubectl sends it for --as-group a --as-group b, leaves each of these proxies with one header
# "a, b". Node joins repeated headers, and the proxies send on what it joined, not the raw headers. The API server takes each header for one group, so
# that the user is in one group with the name "a, b". Impersonate-Extra-* is joined as well.
# Expected: the headers as they came. HTTP allows the join for lists with commas only, and a proxy in front of an API is often there for impersonation.
# Who is hurt: dashboards and portals that pass a login with its groups through such a proxy: users in one group work, users in two are "forbidden"
# everywhere, system:authenticated is lost too, and the audit log has a group that does not exist.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . http-proxy@1.18.1 http-proxy-middleware@3.0.11 express-http-proxy@2.1.2 http-proxy-3@1.23.3 httpxy@0.5.6 http2-proxy@5.0.53 \
  @fastify/http-proxy@11.6.3 fastify@5.12.8 express@5.3.0 >/dev/null
cat >main.mjs <<'EOF'
import http from 'node:http'
import fastifyProxy from '@fastify/http-proxy'
import express from 'express'
import expressProxy from 'express-http-proxy'
import fastify from 'fastify'
import http2Proxy from 'http2-proxy'
import httpProxy from 'http-proxy'
import { createProxyServer } from 'http-proxy-3'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { createProxyServer as createProxy } from 'httpxy'

const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))
const api = http.createServer((request, response) => {
  const groups = []
  for (let i = 0; i < request.rawHeaders.length; i += 2)
    if (request.rawHeaders[i].toLowerCase() === 'impersonate-group') groups.push(request.rawHeaders[i + 1])
  response.end(JSON.stringify(groups))
})
const port = await listen(api)
const target = `http://127.0.0.1:${port}`
const ask = async (name, port) => {
  const body = await new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, headers: { 'Impersonate-User': 'jane', 'Impersonate-Group': ['developers', 'system:authenticated'] } }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve(text)
    }).on('error', reject)
  })
  console.log(`${name}: ${body}`)
}
const old = httpProxy.createProxyServer({ target })
const third = createProxyServer({ target })
const xy = createProxy({ target })
await ask('no proxy', port)
for (const [name, handler] of Object.entries({
  'http-proxy': (request, response) => old.web(request, response),
  'http-proxy-middleware': express().use(createProxyMiddleware({ target })),
  'express-http-proxy': express().use(expressProxy(target)),
  'http-proxy-3': (request, response) => third.web(request, response),
  httpxy: (request, response) => xy.web(request, response),
  'http2-proxy': (request, response) => http2Proxy.web(request, response, { hostname: '127.0.0.1', port }, () => {}),
})) await ask(name, await listen(http.createServer(handler)))
const server = fastify()
server.register(fastifyProxy, { upstream: target })
await server.listen({ port: 0, host: '127.0.0.1' })
await ask('@fastify/http-proxy', server.server.address().port)
process.exit(0)
EOF
node main.mjs 2>/dev/null | tee out
cat >want <<'EOF'
no proxy: ["developers","system:authenticated"]
http-proxy: ["developers, system:authenticated"]
http-proxy-middleware: ["developers, system:authenticated"]
express-http-proxy: ["developers, system:authenticated"]
http-proxy-3: ["developers, system:authenticated"]
httpxy: ["developers, system:authenticated"]
http2-proxy: ["developers, system:authenticated"]
@fastify/http-proxy: ["developers, system:authenticated"]
EOF
diff want out
