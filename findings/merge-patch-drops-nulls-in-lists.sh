#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (the merge patch of the API server, kubectl and controller-runtime) and v5 v5.9.11, beside
# json-merge-patch 1.0.2 (npm).
#
# Seen, 1: members with the value null are taken out of objects inside of lists. RFC 7396 replaces a list as it is; null deletes
# members of objects that are merged, and a list is not.
# Seen, 2: MergeMergePatches, documented to yield a patch with the same result as the two in succession, does not if the second one
# sets an object that the first has deleted: what was in the object before is there again.
# Expected: the list of the patch; and an error where no patch can do what the two do.
# Who is hurt: custom resources with `nullable: true`, where null is "none" and absent is "the default": sent by merge patch, a null in
# an item becomes the default. And patches that are collected before they are sent bring deleted members back.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . json-merge-patch@1.0.2 >/dev/null
cat >main.go <<'EOF'
package main

import (
	"fmt"

	v5 "github.com/evanphx/json-patch/v5"
	v4 "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	type library struct {
		name         string
		apply, merge func(a, b []byte) ([]byte, error)
	}
	for _, l := range []library{{"v4", v4.MergePatch, v4.MergeMergePatches}, {"v5", v5.MergePatch, v5.MergeMergePatches}} {
		must := func(data []byte, err error) []byte {
			if err != nil {
				panic(err)
			}
			return data
		}
		fmt.Printf("%s: %s\n", l.name, must(l.apply([]byte(`{}`), []byte(`{"rules":[{"port":80,"host":null}]}`))))
		object, first, second := []byte(`{"labels":{"old":"1"}}`), []byte(`{"labels":null}`), []byte(`{"labels":{"new":"2"}}`)
		fmt.Printf("%s, one after the other: %s\n", l.name, must(l.apply(must(l.apply(object, first)), second)))
		fmt.Printf("%s, merged: %s\n", l.name, must(l.apply(object, must(l.merge(first, second)))))
	}
}
EOF
go mod init finding 2>/dev/null
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 github.com/evanphx/json-patch/v5@v5.9.11 2>/dev/null
{
  go run -mod=mod .
  node -e 'console.log("npm:", JSON.stringify(require("json-merge-patch").apply({}, { rules: [{ port: 80, host: null }] })))'
} | tee out
cat >want <<'EOF'
v4: {"rules":[{"port":80}]}
v4, one after the other: {"labels":{"new":"2"}}
v4, merged: {"labels":{"new":"2","old":"1"}}
v5: {"rules":[{"port":80}]}
v5, one after the other: {"labels":{"new":"2"}}
v5, merged: {"labels":{"old":"1","new":"2"}}
npm: {"rules":[{"port":80,"host":null}]}
EOF
diff want out
