#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.12.0 (the JSON Patch library of kube-apiserver 1.32),
# compared with fast-json-patch 3.1.1 (npm).
#
# Seen: the "test" operation compares the JSON source text of scalars, not their values.
# Go's own encoding/json writes "<" as "\u003c", so a ConfigMap that json.Marshal has
# just encoded fails a test for the very value that was put into it. 1 and 1.0, and 100
# and 1e2, differ as well.
# Expected: RFC 6902, section 4.6: strings are equal if they hold the same characters,
# numbers if they are numerically equal. fast-json-patch does that.
# Who is hurt: clients that guard a patch with "test" (optimistic locking of a field) when
# the value holds "<", ">" or "&", or when their encoder writes 1.0: the patch is refused
# although nothing has changed. The outcome depends on who encoded the object last.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	doc, _ := json.Marshal(map[string]any{"rule": "a<b", "n": 1, "m": 100})
	fmt.Printf("document: %s\n", doc)
	for _, op := range []string{
		`{"op":"test","path":"/rule","value":"a<b"}`,
		`{"op":"test","path":"/rule","value":"a\u003cb"}`,
		`{"op":"test","path":"/n","value":1.0}`,
		`{"op":"test","path":"/m","value":1e2}`,
	} {
		patch, err := jsonpatch.DecodePatch([]byte("[" + op + "]"))
		if err != nil {
			panic(err)
		}
		_, err = patch.Apply(doc)
		fmt.Printf("go   %s passes: %v\n", op, err == nil)
	}
}
EOF
cat >main.mjs <<'EOF'
import patch from 'fast-json-patch'
const doc = { rule: 'a<b', n: 1, m: 100 }
for (const op of [
  '{"op":"test","path":"/rule","value":"a<b"}',
  '{"op":"test","path":"/rule","value":"a\\u003cb"}',
  '{"op":"test","path":"/n","value":1.0}',
  '{"op":"test","path":"/m","value":1e2}',
]) {
  let passes = true
  try { patch.applyPatch(structuredClone(doc), [JSON.parse(op)]) } catch { passes = false }
  console.log(`node ${op} passes: ${passes}`)
}
EOF
go mod init finding 2>/dev/null
go get gopkg.in/evanphx/json-patch.v4@v4.12.0 2>/dev/null
npm install --silent --no-save --prefix . fast-json-patch@3.1.1 >/dev/null
{ go run -mod=mod .; node main.mjs; } | tee out
cat >want <<'EOF'
document: {"m":100,"n":1,"rule":"a\u003cb"}
go   {"op":"test","path":"/rule","value":"a<b"} passes: false
go   {"op":"test","path":"/rule","value":"a\u003cb"} passes: true
go   {"op":"test","path":"/n","value":1.0} passes: false
go   {"op":"test","path":"/m","value":1e2} passes: false
node {"op":"test","path":"/rule","value":"a<b"} passes: true
node {"op":"test","path":"/rule","value":"a\u003cb"} passes: true
node {"op":"test","path":"/n","value":1.0} passes: true
node {"op":"test","path":"/m","value":1e2} passes: true
EOF
diff want out
