#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.1 (kustomize 5.8), replacements whose field path goes into the text of a ConfigMap.
#
# Seen: the text is parsed and written again. Of YAML with several documents only the first is left, and a file loses its last newline. In
# JSON the members are sorted, "<" and "&" become escapes, 1.0 and 1e3 become 1 and 1000. Nothing of it is reported.
# Expected: the named value replaced and the rest of the file as it was, or an error for a text of several documents.
# Who is hurt: users of this feature of 5.8 on configuration files: logging, alert or policy files of several documents lose all but the
# first in the cluster, and programs that tell 1.0 from 1, or compare a file's hash, see another file.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const kustomization = `
resources: [objects.yaml]
replacements:
- source: {kind: ConfigMap, name: settings, fieldPath: data.host}
  targets:
  - select: {kind: ConfigMap, name: app}
    fieldPaths: [data.yaml.host, data.json.host]
`

const objects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {host: db.example.com}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data:
  yaml: |
    host: localhost
    ---
    second: document
  json: |
    {"port": 5432, "host": "localhost", "rate": 1.0, "limit": 1e3, "query": "a<b&c"}
`

func main() {
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"kustomization.yaml": kustomization, "objects.yaml": objects} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			panic(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		panic(err)
	}
	for _, object := range built.Resources() {
		if object.GetName() == "app" {
			for _, key := range []string{"yaml", "json"} {
				fmt.Printf("%s: %q\n", key, object.GetDataMap()[key])
			}
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/kustomize/api@v0.21.1 sigs.k8s.io/kustomize/kyaml@v0.21.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
yaml: "host: db.example.com"
json: "{\"host\":\"db.example.com\",\"limit\":1000,\"port\":5432,\"query\":\"a\\u003cb\\u0026c\",\"rate\":1}"
EOF
diff want out
