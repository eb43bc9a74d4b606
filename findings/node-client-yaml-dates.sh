#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm), its loadYaml; sigs.k8s.io/yaml v1.6.0, which kubectl uses.
#
# Seen: a plain date in a manifest, where the API wants text (an annotation, a label, a value of a ConfigMap),
# becomes a Date with the Node client, and what it sends is another text: 2024-01-01 arrives as
# 2024-01-01T00:00:00.000Z, which as a label is refused for its colons. kubectl sends the date as written.
# Expected: the same value from the same file; YAML numbers, which both do not take for text, are
# refused by the server, a changed date is not.
# Who is hurt: those who apply with one tool and compare or apply again with the other
# (release dates, API versions named by date, expiry annotations that a controller parses).
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >manifest.yaml <<'EOF'
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {released: 2024-01-01}}
data: {since: 2024-01-01 10:00:00, month: 2024-01}
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	text, err := os.ReadFile("manifest.yaml")
	if err != nil {
		panic(err)
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		panic(err)
	}
	fmt.Println("kubectl:", string(body))
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import { loadYaml } from '@kubernetes/client-node'
import { ObjectSerializer } from '@kubernetes/client-node/dist/gen/models/ObjectSerializer.js'
const object = loadYaml(readFileSync('manifest.yaml', 'utf8'))
const { data, metadata } = ObjectSerializer.serialize(object, 'V1ConfigMap')
console.log('Node client:', JSON.stringify({ data, metadata: { annotations: metadata.annotations } }))
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
kubectl: {"apiVersion":"v1","data":{"month":"2024-01","since":"2024-01-01 10:00:00"},"kind":"ConfigMap","metadata":{"annotations":{"released":"2024-01-01"},"name":"a"}}
Node client: {"data":{"since":"2024-01-01T10:00:00.000Z","month":"2024-01"},"metadata":{"annotations":{"released":"2024-01-01T00:00:00.000Z"}}}
EOF
diff want out
