#!/bin/sh
# ms 2.1.3 (npm) with k8s.io/apimachinery v0.36.2, metav1.Duration; beside parse-duration 2.1.9 (npm).
#
# Seen: Go writes a duration of a minute or more in several units, "1m0s", and ms, which reads one number with one unit, returns
# undefined for it, without an error. setTimeout and setInterval take undefined for 1 ms. Below a minute, "30s" and "1.5s" are
# read. parse-duration reads all of them.
# Expected: an exception, as ms throws for an empty text.
# Who is hurt: controllers in Node for resources whose intervals Go's tools have written (Flux, cert-manager): tests
# with 30s pass, and with `interval: 1m`, which the Go side stores as 1m0s, the loop asks the API server a thousand times a second.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . ms@2.1.3 parse-duration@2.1.9 >/dev/null
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	var texts []metav1.Duration
	for _, duration := range []time.Duration{1500 * time.Millisecond, 30 * time.Second, time.Minute, 90 * time.Second, time.Hour} {
		texts = append(texts, metav1.Duration{Duration: duration})
	}
	if err := json.NewEncoder(os.Stdout).Encode(texts); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . >durations.json
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import ms from 'ms'
import parse from 'parse-duration'

for (const text of JSON.parse(fs.readFileSync('durations.json', 'utf8'))) {
  const timer = setTimeout(() => {}, ms(text))
  console.log(`${text}: ms ${ms(text)}, setTimeout waits ${timer._idleTimeout} ms, parse-duration ${parse(text)}`)
  clearTimeout(timer)
}
EOF
node main.mjs | tee out
cat >want <<'EOF'
1.5s: ms 1500, setTimeout waits 1500 ms, parse-duration 1500
30s: ms 30000, setTimeout waits 30000 ms, parse-duration 30000
1m0s: ms undefined, setTimeout waits 1 ms, parse-duration 60000
1m30s: ms undefined, setTimeout waits 1 ms, parse-duration 90000
1h0m0s: ms undefined, setTimeout waits 1 ms, parse-duration 3600000
EOF
diff want out
