#!/bin/sh
# k8s.io/apimachinery v0.36.2, util/yaml.NewYAMLOrJSONDecoder, with which kubectl reads manifests; js-yaml 4.1.0 (npm).
#
# Seen: objects of a manifest are lost without an error. After "..." (the end of a document) the next one is not
# read, and neither is a second JSON object in a part after "---", although a stream that begins with JSON may hold
# objects one after the other.
# Expected: each document is read, or an error says that one cannot be.
# Who is hurt: those who join what several programs print for "kubectl apply -f -": a file that ends with "..."
# (PyYAML's explicit_end writes it) before one without "---", or JSON lines after a YAML part. kubectl applies the
# first object and succeeds; with --prune it deletes the others.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	for _, name := range os.Args[1:] {
		file, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		fmt.Printf("apimachinery %s:", name)
		for d := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			var document any
			if err := d.Decode(&document); err == io.EOF {
				break
			} else if err != nil {
				panic(err)
			}
			text, _ := json.Marshal(document)
			fmt.Printf(" %s", text)
		}
		fmt.Println()
	}
}
EOF
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import yaml from 'js-yaml'
console.log('js-yaml ends:', yaml.loadAll(readFileSync('ends', 'utf8')).map((d) => JSON.stringify(d)).join(' '))
EOF
printf 'a: 1\n...\nb: 2\n...\nc: 3\n' >ends
printf '{"a":1}{"b":2}\n' >json
printf 'a: 1\n---\n{"b":2}{"c":3}\n' >mixed
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
npm install --silent --no-save --prefix . js-yaml@4.1.0 >/dev/null
{ go run -mod=mod . ends json mixed; node main.mjs; } | tee out
cat >want <<'EOF'
apimachinery ends: {"a":1}
apimachinery json: {"a":1} {"b":2}
apimachinery mixed: {"a":1} {"b":2}
js-yaml ends: {"a":1} {"b":2} {"c":3}
EOF
diff want out
