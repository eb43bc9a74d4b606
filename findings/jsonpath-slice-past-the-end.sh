#!/bin/sh
# k8s.io/client-go v0.32.13, package util/jsonpath (kubectl get -o jsonpath), compared with
# jsonpath-plus 10.4.0 (npm; @kubernetes/client-node depends on it).
#
# Seen: a slice whose end lies past the end of the list is an error and prints nothing:
# {.items[0:10]} works on a namespace with ten pods and fails on one with three. A single
# odd value in a list breaks a filter in the same way: [?(@.v==1)] fails as soon as one
# element has a v that is a string.
# Expected: slices are clipped and values of unlike types are unequal, as in RFC 9535
# and in jsonpath-plus.
# Who is hurt: scripts and "kubectl wait" conditions that were tried on one set of objects
# and meet a smaller or a mixed one.
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
	doc := map[string]any{
		"l":     []any{"a", "b", "c"},
		"items": []any{map[string]any{"n": "x", "v": int64(1)}, map[string]any{"n": "y", "v": "auto"}},
	}
	for _, template := range []string{"{.l[0:3]}", "{.l[0:10]}", "{.items[?(@.v==1)].n}"} {
		j := jsonpath.New("x").AllowMissingKeys(true)
		if err := j.Parse(template); err != nil {
			panic(err)
		}
		var out bytes.Buffer
		if err := j.Execute(&out, doc); err != nil {
			fmt.Printf("go   %s: error: %v\n", template, err)
		} else {
			fmt.Printf("go   %s: %s\n", template, out.String())
		}
	}
}
EOF
cat >main.mjs <<'EOF'
import { JSONPath } from 'jsonpath-plus'
const json = { l: ['a', 'b', 'c'], items: [{ n: 'x', v: 1 }, { n: 'y', v: 'auto' }] }
for (const path of ['$.l[0:3]', '$.l[0:10]', '$.items[?(@.v==1)].n'])
  console.log(`node ${path}: ${JSONPath({ path, json }).join(' ')}`)
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.32.13 2>/dev/null
npm install --silent --no-save --prefix . jsonpath-plus@10.4.0 >/dev/null
{ go run -mod=mod .; node main.mjs; } | tee out
cat >want <<'EOF'
go   {.l[0:3]}: a b c
go   {.l[0:10]}: error: array index out of bounds: index 9, length 3
go   {.items[?(@.v==1)].n}: error: incompatible types for comparison
node $.l[0:3]: a b c
node $.l[0:10]: a b c
node $.items[?(@.v==1)].n: x
EOF
diff want out
