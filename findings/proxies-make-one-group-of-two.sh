#!/bin/sh
# http-proxy 1.18.1, http-proxy-middleware 3.0.11, express-http-proxy 2.1.2, http-proxy-3 1.23.3, httpxy 0.5.6, http2-proxy 5.0.53 and @fastify/http-proxy 11.6.3
# (npm), and apache2 2.4.71, lighttpd 1.4.69 and nginx 1.22.1 of Debian 12, in front of a Kubernetes API.
#
# Seen: a request with the header Impersonate-Group twice, as kubectl sends it for --as-group a --as-group b, leaves each of these proxies but nginx with one
# header "a, b". Node, Apache and lighttpd join repeated headers, and the proxies send on what was joined. The API server takes each header for one group,
# so that the user is in one group with the name "a, b". Impersonate-Extra-* is joined as well.
# Expected: the headers as they came. HTTP allows the join for lists with commas only, and a proxy in front of an API is often there for impersonation.
# Who is hurt: dashboards and portals that pass a login with its groups through such a proxy: users in one group work, users in two are "forbidden"
# everywhere, system:authenticated is lost too, and the audit log has a group that does not exist.
set -eu
dir=$(mktemp -d); pids=; trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download apache2-bin=2.4.71-1~deb12u1 libapr1 libaprutil1 lighttpd=1.4.69-1 nginx=1.22.1-9+deb12u11 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
port=${FINDING_PORT:-23790}
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
const port = Number(process.argv[2])
await new Promise((resolve) => api.listen(port, '127.0.0.1', resolve))
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
for (const [name, number] of [['apache2', 1], ['lighttpd', 2], ['nginx', 3]]) {
  for (let i = 0; ; i++) {
    try {
      await ask(name, port + number)
      break
    } catch (e) {
      if (i === 300) throw e
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
process.exit(0)
EOF
modules=$dir/usr/lib/apache2/modules
cat >apache.conf <<EOF
ServerRoot $dir
ServerName localhost
Listen 127.0.0.1:$((port + 1))
PidFile $dir/apache.pid
ErrorLog $dir/apache.log
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule proxy_module $modules/mod_proxy.so
LoadModule proxy_http_module $modules/mod_proxy_http.so
User nobody
Group nogroup
ProxyPass / http://127.0.0.1:$port/
EOF
cat >lighttpd.conf <<EOF
server.modules = ("mod_proxy")
server.document-root = "$dir"
server.bind = "127.0.0.1"
server.port = $((port + 2))
proxy.server = ("" => (("host" => "127.0.0.1", "port" => $port)))
EOF
mkdir temp
cat >nginx.conf <<EOF
daemon off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events {}
http {
  access_log off;
  client_body_temp_path $dir/temp/a;
  proxy_temp_path $dir/temp/b;
  fastcgi_temp_path $dir/temp/c;
  uwsgi_temp_path $dir/temp/d;
  scgi_temp_path $dir/temp/e;
  server {
    listen 127.0.0.1:$((port + 3));
    location / { proxy_pass http://127.0.0.1:$port; }
  }
}
EOF
chmod 711 .
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
usr/sbin/apache2 -f "$dir/apache.conf" -DFOREGROUND >apache.out 2>&1 & pids=$!
usr/sbin/lighttpd -D -m "$dir/usr/lib/lighttpd" -f lighttpd.conf >lighttpd.out 2>&1 & pids="$pids $!"
usr/sbin/nginx -p "$dir" -c "$dir/nginx.conf" >nginx.out 2>&1 & pids="$pids $!"
LD_LIBRARY_PATH='' node main.mjs "$port" 2>/dev/null | tee out
cat >want <<'EOF'
no proxy: ["developers","system:authenticated"]
http-proxy: ["developers, system:authenticated"]
http-proxy-middleware: ["developers, system:authenticated"]
express-http-proxy: ["developers, system:authenticated"]
http-proxy-3: ["developers, system:authenticated"]
httpxy: ["developers, system:authenticated"]
http2-proxy: ["developers, system:authenticated"]
@fastify/http-proxy: ["developers, system:authenticated"]
apache2: ["developers, system:authenticated"]
lighttpd: ["developers, system:authenticated"]
nginx: ["developers","system:authenticated"]
EOF
diff want out
