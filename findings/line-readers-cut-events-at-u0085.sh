#!/bin/sh
# requests 2.28.1 of Debian 12, iter_lines(decode_unicode=True); byline 5.0.0 (npm), with which older Node clients watch.
#
# Seen: both end a line at U+0085 (NEXT LINE), among other characters. JSON allows it unescaped inside of a string, and Go,
# in which API servers are written, escapes U+2028 and not U+0085: the event of an object with this character in a text is two
# lines, and neither is JSON. Without decode_unicode, in httpx 0.23.3 and in Node's readline the event is whole.
# Expected: a watch has one event a line, and a line ends with a newline.
# Who is hurt: U+0085 ends lines in text from mainframes, and it is the ellipsis of Windows, read as Latin-1. A ConfigMap or an
# Event with one ends the watch with an error of JSON, or is lost, and again after each restart, while lists are fine.
set -eu
dir=$(mktemp -d); server=; trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-httpx=0.23.3-1 python3-httpcore python3-h11 python3-anyio python3-certifi python3-sniffio \
  python3-rfc3986 python3-idna python3-requests=2.28.1+dfsg-1 python3-urllib3 python3-charset-normalizer python3-chardet >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . byline@5.0.0 >/dev/null
mkdir server
cat >server/main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		event := map[string]any{"type": "ADDED", "object": map[string]any{"data": map[string]string{"a": "one\u0085two\u2028three"}}}
		if err := json.NewEncoder(w).Encode(event); err != nil {
			panic(err)
		}
	})))
}
EOF
(cd server && go mod init finding 2>/dev/null && go build -o ../serve .)
./serve >address & server=$!
for _ in $(seq 600); do test -s address && break; sleep 0.1; done
cat >main.py <<'EOF'
import json

import httpx
import requests

url = 'http://' + open('address').read().strip()


def show(name, lines):
    for line in lines:
        try:
            json.loads(line)
            print(f'{name}: an event')
        except json.JSONDecodeError as e:
            print(f'{name}: {e.msg}')


with httpx.stream('GET', url) as response:
    show('httpx', response.iter_lines())
show('requests', requests.get(url, stream=True).iter_lines())
show('requests, decode_unicode', requests.get(url, stream=True).iter_lines(decode_unicode=True))
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import readline from 'node:readline'
import { Readable } from 'node:stream'
import byline from 'byline'

const url = 'http://' + fs.readFileSync('address', 'utf8').trim()
const show = (name, line) => {
  try {
    JSON.parse(line)
    console.log(`${name}: an event`)
  } catch (e) {
    console.log(`${name}: ${e.name}`)
  }
}
for await (const line of byline(Readable.fromWeb((await fetch(url)).body), { encoding: 'utf8' })) show('byline', line)
for await (const line of readline.createInterface(Readable.fromWeb((await fetch(url)).body))) show('readline', line)
EOF
{
  PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py
  node main.mjs
} | tee out
cat >want <<'EOF'
httpx: an event
requests: an event
requests, decode_unicode: Unterminated string starting at
requests, decode_unicode: Expecting value
byline: SyntaxError
byline: SyntaxError
readline: an event
EOF
diff want out
