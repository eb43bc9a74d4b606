#!/bin/sh
# undici 7.16.0 (npm) and the fetch of Node 20, which is undici 6; python3-aiohttp 3.8.4 and python3-httpx 0.23.3 of Debian 12.
#
# Seen: by default each of them ends a watch that the server keeps open. undici does after 300 seconds without a byte
# (UND_ERR_BODY_TIMEOUT; fetch has no option for it, only undici's Agent), httpx after 5. aiohttp does 300 seconds after the
# request, bookmarks or not. node:http and curl wait.
# Expected: an answer that has begun may take as long as it likes; the Fetch standard has no limit.
# Who is hurt: programs that watch with a general client, without allowWatchBookmarks: they list again every five minutes, all
# replicas of all of them, or stop for good if the error ends the loop. In tests, where something always happens, the
# first two never show.
#
# It takes five minutes.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . undici@7.16.0 >/dev/null
apt-get download python3-aiohttp=3.8.4-1+deb12u2 python3-aiosignal python3-async-timeout python3-frozenlist python3-multidict python3-yarl \
  python3-attr python3-charset-normalizer python3-idna python3-httpx=0.23.3-1 python3-httpcore python3-h11 python3-anyio \
  python3-certifi python3-sniffio python3-rfc3986 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >server.mjs <<'EOF'
import fs from 'node:fs'
import http from 'node:http'

const server = http.createServer((request, response) => {
  response.write('{"type":"ADDED"}\n')
  const bookmarks = request.url === '/bookmarks' ? setInterval(() => response.write('{"type":"BOOKMARK"}\n'), 60_000) : undefined
  const end = setTimeout(() => response.end(), 315_000)
  response.on('close', () => { clearInterval(bookmarks); clearTimeout(end) })
})
server.listen(0, '127.0.0.1', () => fs.writeFileSync('address', `http://127.0.0.1:${server.address().port}`))
EOF
node server.mjs & server=$!
for _ in $(seq 600); do test -s address && break; sleep 0.1; done
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import http from 'node:http'
import * as undici from 'undici'

const address = fs.readFileSync('address', 'utf8')
const watch = async (name, fetch, path) => {
  const { body } = await fetch(address + path)
  try {
    for await (const chunk of body) void chunk
    return `${name} ${path}: ended by the server`
  } catch (e) {
    return `${name} ${path}: ${e.message}, ${e.cause?.code}`
  }
}
console.log((await Promise.all([
  watch('Node', fetch, '/quiet'), watch('Node', fetch, '/bookmarks'),
  watch('undici', undici.fetch, '/quiet'), watch('undici', undici.fetch, '/bookmarks'),
  new Promise((resolve) => http.get(address + '/quiet', (response) => {
    response.resume().on('end', () => resolve('node:http /quiet: ended by the server'))
  })),
])).join('\n'))
EOF
cat >main.py <<'EOF'
import asyncio

import aiohttp
import httpx

address = open('address').read()


async def with_aiohttp(path):
    async with aiohttp.ClientSession() as session:
        async with session.get(address + path) as response:
            async for _ in response.content:
                pass


async def with_httpx(path):
    async with httpx.AsyncClient() as client:
        async with client.stream('GET', address + path) as response:
            async for _ in response.aiter_lines():
                pass


async def watch(name, run, path):
    try:
        await run(path)
        return f'{name} {path}: ended by the server'
    except Exception as e:
        return f'{name} {path}: {type(e).__name__}'


async def main():
    results = await asyncio.gather(*(watch(name, run, path) for name, run in (('aiohttp', with_aiohttp), ('httpx', with_httpx))
                                     for path in ('/quiet', '/bookmarks')))
    print('\n'.join(results))

asyncio.run(main())
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py >python.out & python=$!
node main.mjs >out
wait $python
cat python.out >>out
cat out
cat >want <<'EOF'
Node /quiet: terminated, UND_ERR_BODY_TIMEOUT
Node /bookmarks: ended by the server
undici /quiet: terminated, UND_ERR_BODY_TIMEOUT
undici /bookmarks: ended by the server
node:http /quiet: ended by the server
aiohttp /quiet: TimeoutError
aiohttp /bookmarks: TimeoutError
httpx /quiet: ReadTimeout
httpx /bookmarks: ReadTimeout
EOF
diff want out
