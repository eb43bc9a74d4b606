#!/bin/sh
# github.com/jmespath/go-jmespath v0.4.0; python3-jmespath 1.0.1 of Debian 12; jmespath 0.16.0 and @metrichor/jmespath 0.3.1 (npm).
#
# Seen: `items[?metadata.creationTimestamp < '2024-01-02']` selects the older object in Python and in both libraries of npm. In Go
# `<` of two texts is null without an error, so nothing is selected, and the negation selects everything.
# Expected: one result. (The specification orders numbers only; the three others order texts too.)
# Who is hurt: filters that move from Ansible's json_query or the AWS command line to Kyverno and other Go tools: a clean-up of
# objects older than a date finds none, and one that keeps what is newer (`!(a < b)`) keeps all, or deletes all.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-jmespath=1.0.1-1 >/dev/null 2>&1
dpkg-deb -x ./*.deb .
npm install --silent --no-save --prefix . jmespath@0.16.0 @metrichor/jmespath@0.3.1 >/dev/null
cat >list.json <<'EOF'
{"items":[{"metadata":{"name":"old","creationTimestamp":"2024-01-01T00:00:00Z"}},{"metadata":{"name":"new","creationTimestamp":"2024-01-03T00:00:00Z"}}]}
EOF
cat >queries <<'EOF'
items[?metadata.creationTimestamp < '2024-01-02'].metadata.name
items[?!(metadata.creationTimestamp < '2024-01-02')].metadata.name
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jmespath/go-jmespath"
)

func main() {
	text, err := os.ReadFile("list.json")
	if err != nil {
		panic(err)
	}
	var list any
	if err := json.Unmarshal(text, &list); err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		result, err := jmespath.Search(lines.Text(), list)
		fmt.Println("go-jmespath:", result, err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/jmespath/go-jmespath@v0.4.0 2>/dev/null
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import jmespath from 'jmespath'
import * as metrichor from '@metrichor/jmespath'

const list = JSON.parse(fs.readFileSync('list.json', 'utf8'))
for (const [name, search] of [['jmespath', jmespath.search], ['@metrichor/jmespath', metrichor.search ?? metrichor.default.search]])
  for (const query of fs.readFileSync('queries', 'utf8').trim().split('\n')) console.log(`${name}:`, JSON.stringify(search(list, query)))
EOF
cat >main.py <<'EOF'
import json

import jmespath

for query in open('queries'):
    print('Python:', jmespath.search(query, json.load(open('list.json'))))
EOF
{
  PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 main.py
  node main.mjs
  go run -mod=mod . <queries
} | tee out
cat >want <<'EOF'
Python: ['old']
Python: ['new']
jmespath: ["old"]
jmespath: ["new"]
@metrichor/jmespath: ["old"]
@metrichor/jmespath: ["new"]
go-jmespath: [] <nil>
go-jmespath: [old new] <nil>
EOF
diff want out
