#!/bin/sh
# k8s.io/client-go v0.36.2, util/jsonpath (kubectl, printer columns of custom resources); jsonpath-plus 10.3.0, jsonpath 1.1.1 and
# json-p3 2.2.2 (npm; the last one follows RFC 9535).
#
# Seen: a key with dots, as most labels are, has one spelling for kubectl, with a backslash before each dot, and another one for
# the rest. kubectl answers ['app.kubernetes.io/name'] with the empty text, and jsonpath-plus answers kubectl's spelling with
# an empty list, without an error. jsonpath-plus finds nothing at all if the path has no `$`, as printer columns have
# none, and [-1] is empty in two libraries.
# Expected: an error for what is not understood, or RFC 9535.
# Who is hurt: user interfaces that evaluate printer columns in JavaScript, and scripts with an expression that was tried in
# an online tester: the column is empty, and a loop over `kubectl get -o jsonpath` does nothing.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . jsonpath-plus@10.3.0 jsonpath@1.1.1 json-p3@2.2.2 >/dev/null
echo '{"labels":{"app.kubernetes.io/name":"shop"},"list":["a","b"]}' >object.json
cat >paths <<'EOF'
.labels.app\.kubernetes\.io/name
.labels['app\.kubernetes\.io/name']
.labels['app.kubernetes.io/name']
.labels["app.kubernetes.io/name"]
.list[-1]
.list[-1:]
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

func main() {
	text, err := os.ReadFile("object.json")
	if err != nil {
		panic(err)
	}
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var out strings.Builder
		path := jsonpath.New("").AllowMissingKeys(true)
		if err := path.Parse("{" + lines.Text() + "}"); err != nil {
			fmt.Println("error")
			continue
		}
		if err := path.Execute(&out, object); err != nil {
			fmt.Println("error")
			continue
		}
		fmt.Printf("%q\n", out.String())
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.36.2 2>/dev/null
go run -mod=mod . <paths >kubectl.out
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { jsonpath as p3 } from 'json-p3'
import jsonpath from 'jsonpath'
import { JSONPath } from 'jsonpath-plus'

const object = JSON.parse(fs.readFileSync('object.json', 'utf8'))
const result = (run) => { try { return JSON.stringify(run()) } catch { return 'error' } }
for (const path of fs.readFileSync('paths', 'utf8').trim().split('\n'))
  console.log([
    result(() => JSONPath({ path, json: object })),
    result(() => JSONPath({ path: '$' + path, json: object })),
    result(() => jsonpath.query(object, '$' + path)),
    result(() => p3.query('$' + path, object).values()),
  ].join(' | '))
EOF
node main.mjs >npm.out
{
  echo 'path | kubectl | jsonpath-plus | with $ | jsonpath with $ | json-p3 with $'
  paste -d'|' paths kubectl.out npm.out | sed 's/|/ | /; s/|\([["e]\)/| \1/'
} | tee out
cat >want <<'EOF'
path | kubectl | jsonpath-plus | with $ | jsonpath with $ | json-p3 with $
.labels.app\.kubernetes\.io/name | "shop"| [] | [] | error | error
.labels['app\.kubernetes\.io/name'] | "shop"| [] | [] | error | error
.labels['app.kubernetes.io/name'] | ""| [] | ["shop"] | ["shop"] | ["shop"]
.labels["app.kubernetes.io/name"] | error| [] | ["shop"] | ["shop"] | ["shop"]
.list[-1] | "b"| [] | [] | [] | ["b"]
.list[-1:] | "b"| [] | ["b"] | ["b"] | ["b"]
EOF
diff want out
