#!/bin/sh
# sigs.k8s.io/yaml v1.6.0, which kubectl and Helm use; js-yaml 4.1.0 and yaml 2.8.1 (npm).
#
# Seen: a merge key that is written after a key overrides it: {replicas: 1, <<: *defaults} has the replicas of the
# defaults, and {<<: *defaults, replicas: 1} has 1. Strict reading refuses both as a duplicate key, and a list of
# two merged mappings that share a key too.
# Expected: as the definition of merge keys says, and as the libraries of npm do it, a mapping's own keys win
# wherever they are written, and an earlier mapping of a list wins over a later one; neither is a duplicate.
# Who is hurt: those who share defaults by anchors. The same file has one value in an editor, linter or pipeline on
# Node, and another in the cluster; and turning on strict reading refuses files that it should read.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		body, err := yaml.YAMLToJSON(lines.Bytes())
		if err != nil {
			panic(err)
		}
		_, err = yaml.YAMLToJSONStrict(lines.Bytes())
		fmt.Printf("sigs.k8s.io/yaml %s strict: %t\n", body, err == nil)
	}
}
EOF
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import jsYaml from 'js-yaml'
import yaml from 'yaml'
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  console.log('js-yaml', JSON.stringify(jsYaml.load(line)))
  console.log('yaml', JSON.stringify(yaml.parse(line, { merge: true })))
}
EOF
cat >in <<'EOF'
{a: &d {size: 3}, b: {<<: *d, size: 1}}
{a: &d {size: 3}, b: {size: 1, <<: *d}}
{a: &d {size: 3}, c: &e {size: 4}, b: {<<: [*d, *e]}}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
npm install --silent --no-save --prefix . js-yaml@4.1.0 yaml@2.8.1 >/dev/null
{ go run -mod=mod . <in; node main.mjs <in; } | tee out
cat >want <<'EOF'
sigs.k8s.io/yaml {"a":{"size":3},"b":{"size":1}} strict: false
sigs.k8s.io/yaml {"a":{"size":3},"b":{"size":3}} strict: false
sigs.k8s.io/yaml {"a":{"size":3},"b":{"size":3},"c":{"size":4}} strict: false
js-yaml {"a":{"size":3},"b":{"size":1}}
yaml {"a":{"size":3},"b":{"size":1}}
js-yaml {"a":{"size":3},"b":{"size":1}}
yaml {"a":{"size":3},"b":{"size":1}}
js-yaml {"a":{"size":3},"c":{"size":4},"b":{"size":3}}
yaml {"a":{"size":3},"c":{"size":4},"b":{"size":3}}
EOF
diff want out
