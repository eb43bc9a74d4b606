#!/bin/sh
# k8s.io/client-go v0.32.13, package util/jsonpath (kubectl get -o jsonpath).
#
# Seen: {.labels.*} walks a map in Go's random order: the same template on the same object
# prints its values in another order from call to call. Two wildcards in one template do
# not even agree with each other. {.labels} alone is printed sorted.
# Expected: one order (kubectl prints maps sorted by key everywhere else).
# Who is hurt: scripts that compare two outputs, hash them, or split the line and take the
# n-th value: they work on one run and fail on the next.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

func main() {
	labels := map[string]any{"app": "1", "env": "2", "tier": "3", "zone": "4", "team": "5"}
	for _, template := range []string{"{.labels.*}", "{.labels}"} {
		seen := map[string]bool{}
		for range 200 {
			j := jsonpath.New("x")
			if err := j.Parse(template); err != nil {
				panic(err)
			}
			var out bytes.Buffer
			if err := j.Execute(&out, map[string]any{"labels": labels}); err != nil {
				panic(err)
			}
			seen[out.String()] = true
		}
		fmt.Printf("%s prints more than one order: %v\n", template, len(seen) > 1)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
{.labels.*} prints more than one order: true
{.labels} prints more than one order: false
EOF
diff want out
