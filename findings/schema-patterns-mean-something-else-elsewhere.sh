#!/bin/sh
# k8s.io/apiextensions-apiserver v0.37.2 (the API server's check of `pattern`), ajv 8.17.1 (npm) and python3-jsonschema 4.10.3 of Debian 12.
#
# Seen: the pattern of a definition is Go's RE2 for the server and the language's own for those who check manifests before. `[[:alnum:]]`
# is another set of characters in Python and an error in ajv; `\pL`, `(?i)` inside, `\z` and `\Q` are errors in both, which end the
# check of the whole schema; in Python `$` admits a last newline and `\d` the digits of all scripts.
# Expected: one meaning. JSON Schema and OpenAPI name ECMA 262 for patterns; the API server's documentation names neither.
# Who is hurt: pipelines that check manifests with ajv or jsonschema against the cluster's definitions: they refuse what the server takes
# and pass what it refuses, and one `(?i)` in a definition ends the pipeline.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-jsonschema=4.10.3-1 python3-attr python3-pyrsistent python3-setuptools python3-pkg-resources >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . ajv@8.17.1 >/dev/null
cat >cases <<'EOF'
["^[[:alnum:]]+$","abc"]
["^[[:alnum:]]+$","a]"]
["^\\pL+$","abc"]
["^\\d+$","٣"]
["^[a-z]+$","abc\n"]
["^(?i)tcp$","TCP"]
["^a\\z","a"]
["^\\Qa.b\\E$","a.b"]
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var c [2]string
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			panic(err)
		}
		validator, _, err := validation.NewSchemaValidator(&apiextensions.JSONSchemaProps{Type: "string", Pattern: c[0]})
		switch {
		case err != nil:
			fmt.Println("error")
		case len(validation.ValidateCustomResource(nil, c[1], validator)) > 0:
			fmt.Println("refused")
		default:
			fmt.Println("accepted")
		}
	}
}
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import Ajv from 'ajv'

for (const line of fs.readFileSync('cases', 'utf8').trim().split('\n')) {
  const [pattern, value] = JSON.parse(line)
  let result
  try {
    result = new Ajv.default().validate({ type: 'string', pattern }, value) ? 'accepted' : 'refused'
  } catch {
    result = 'error'
  }
  console.log(result)
}
EOF
cat >main.py <<'EOF'
import json
import re

import jsonschema

for line in open('cases'):
    pattern, value = json.loads(line)
    try:
        jsonschema.validate(value, {'type': 'string', 'pattern': pattern})
        print('accepted')
    except jsonschema.ValidationError:
        print('refused')
    except re.error:
        print('error')
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run -mod=mod . <cases >go.out
node main.mjs >node.out
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py >python.out
paste -d ' ' cases go.out node.out python.out | awk '{ n = NF; s = $1; for (i = 2; i <= n - 3; i++) s = s " " $i; print s ": server " $(n-2) ", ajv " $(n-1) ", jsonschema " $n }' | tee out
cat >want <<'EOF'
["^[[:alnum:]]+$","abc"]: server accepted, ajv error, jsonschema refused
["^[[:alnum:]]+$","a]"]: server refused, ajv error, jsonschema accepted
["^\\pL+$","abc"]: server accepted, ajv error, jsonschema error
["^\\d+$","٣"]: server refused, ajv refused, jsonschema accepted
["^[a-z]+$","abc\n"]: server refused, ajv refused, jsonschema accepted
["^(?i)tcp$","TCP"]: server accepted, ajv error, jsonschema error
["^a\\z","a"]: server accepted, ajv error, jsonschema error
["^\\Qa.b\\E$","a.b"]: server accepted, ajv error, jsonschema error
EOF
diff want out
