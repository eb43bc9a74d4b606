#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.1 (kubectl kustomize).
#
# Seen: a JSON patch that adds a label changes fields that it does not name: an integer above 2^53 is rounded, and a plain
# date gets a time, 2024-01-01T00:00:00Z. Without a patch, and with the same change as a strategic merge patch, both stay.
# Expected: the other fields as they were; for the patch the object becomes JSON, in which both can be written.
# Who is hurt: overlays of custom resources with identifiers, sizes or times in nanoseconds, and annotations with dates: the
# base deploys one value and the overlay another, in a field that no overlay mentions, and nobody reviews.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const object = `apiVersion: example.test/v1
kind: Thing
metadata:
  name: a
  annotations:
    released: 2024-01-01
spec:
  nanos: 9007199254740993
`

func main() {
	patches := map[string]string{
		"no patch": "",
		"strategic merge": `patches:
- patch: |
    apiVersion: example.test/v1
    kind: Thing
    metadata:
      name: a
      labels:
        l: v
`,
		"JSON patch": `patches:
- target:
    kind: Thing
  patch: |
    - op: add
      path: /metadata/labels
      value:
        l: v
`}
	for _, name := range []string{"no patch", "strategic merge", "JSON patch"} {
		files := filesys.MakeFsInMemory()
		for path, text := range map[string]string{"thing.yaml": object, "kustomization.yaml": "resources:\n- thing.yaml\n" + patches[name]} {
			if err := files.WriteFile(path, []byte(text)); err != nil {
				panic(err)
			}
		}
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
		if err != nil {
			panic(err)
		}
		text, err := resources.AsYaml()
		if err != nil {
			panic(err)
		}
		fmt.Println(name + ":")
		for _, line := range strings.Split(string(text), "\n") {
			for _, field := range []string{"released", "nanos"} {
				if strings.HasPrefix(strings.TrimSpace(line), field+":") {
					fmt.Println("  " + strings.TrimSpace(line))
				}
			}
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/kustomize/api@v0.21.1 sigs.k8s.io/kustomize/kyaml@v0.21.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
no patch:
  released: "2024-01-01"
  nanos: 9007199254740993
strategic merge:
  released: "2024-01-01"
  nanos: 9007199254740993
JSON patch:
  released: "2024-01-01T00:00:00Z"
  nanos: 9007199254740992
EOF
diff want out
