#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (JSON patches of the API server of Kubernetes 1.36 and of kubectl), compared with
# rfc6902 5.4.0 and fast-json-patch 3.1.1 (npm).
#
# Seen: in a list, -1 is the last element for the API server: "remove" takes it away, "add" puts behind it, and +1
# and 01 are the second. For rfc6902 a "replace" of -1 or +1 succeeds and changes nothing. fast-json-patch refuses all but 01.
# Expected: an error; in RFC 6901 an index is 0, or digits without a leading zero, or "-" for the end.
# Who is hurt: programs that look an element up and build the path of what they found: indexOf gives -1 for nothing, so
# that /metadata/finalizers/-1 takes another controller's finalizer away, and /spec/containers/-1/image sets the
# image of a sidecar. A rehearsal of the patch in Node says error, or success and no change.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >patches.json <<'EOF'
[
  [{"op": "remove", "path": "/a/-1"}],
  [{"op": "replace", "path": "/a/-1", "value": 9}],
  [{"op": "add", "path": "/a/-1", "value": 9}],
  [{"op": "replace", "path": "/a/+1", "value": 9}],
  [{"op": "add", "path": "/a/01", "value": 9}]
]
EOF
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	text, err := os.ReadFile("patches.json")
	if err != nil {
		panic(err)
	}
	var patches []jsonpatch.Patch
	if err := json.Unmarshal(text, &patches); err != nil {
		panic(err)
	}
	for _, patch := range patches {
		path, err := patch[0].Path()
		if err != nil {
			panic(err)
		}
		out, err := patch.Apply([]byte(`{"a":[1,2,3]}`))
		if err != nil {
			out = []byte("error")
		}
		fmt.Printf("API server: %s %s: %s\n", patch[0].Kind(), path, out)
	}
}
EOF
go mod init finding 2>/dev/null
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . rfc6902@5.4.0 fast-json-patch@3.1.1 >/dev/null
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import fast from 'fast-json-patch'
import { applyPatch } from 'rfc6902'

const libraries = {
  rfc6902: (document, patch) => {
    const [error] = applyPatch(document, patch)
    if (error) throw error
    return document
  },
  'fast-json-patch': (document, patch) => fast.applyPatch(document, patch, true).newDocument,
}
for (const [name, apply] of Object.entries(libraries))
  for (const patch of JSON.parse(readFileSync('patches.json', 'utf8'))) {
    let result
    try {
      result = JSON.stringify(apply({ a: [1, 2, 3] }, patch))
    } catch {
      result = 'error'
    }
    console.log(`${name}: ${patch[0].op} ${patch[0].path}: ${result}`)
  }
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
API server: remove /a/-1: {"a":[1,2]}
API server: replace /a/-1: {"a":[1,2,9]}
API server: add /a/-1: {"a":[1,2,3,9]}
API server: replace /a/+1: {"a":[1,9,3]}
API server: add /a/01: {"a":[1,9,2,3]}
rfc6902: remove /a/-1: error
rfc6902: replace /a/-1: {"a":[1,2,3]}
rfc6902: add /a/-1: error
rfc6902: replace /a/+1: {"a":[1,2,3]}
rfc6902: add /a/01: error
fast-json-patch: remove /a/-1: error
fast-json-patch: replace /a/-1: error
fast-json-patch: add /a/-1: error
fast-json-patch: replace /a/+1: error
fast-json-patch: add /a/01: {"a":[1,9,2,3]}
EOF
diff want out
