#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.12.0 and, built on it, CreateThreeWayJSONMergePatch of
# k8s.io/apimachinery v0.32.13 (kubectl apply, edit and label of custom resources), compared
# with github.com/evanphx/json-patch/v5 v5.9.11 by the same author.
#
# Seen: v4's CreateMergePatch reads both documents into float64. Two int64 values that are
# neighbours above 2^53 give the empty patch, and a value that does change is written to
# the patch rounded. Its MergePatch keeps every digit, and v5 does everywhere.
# Expected: applying CreateMergePatch(a, b) to a gives b.
# Who is hurt: users of custom resources with an int64 field (a time in nanoseconds, an
# identifier): client-side kubectl apply sends another number than the manifest says, or
# reports no change, and no error tells anyone.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	v5 "github.com/evanphx/json-patch/v5"
	v4 "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

func main() {
	for _, c := range [][2]string{
		{`{"id":9007199254740992}`, `{"id":9007199254740993}`},
		{`{"id":1}`, `{"id":9007199254740993}`},
		{`{}`, `{"ids":[9007199254740993]}`},
	} {
		for i, lib := range []struct {
			create, apply func(a, b []byte) ([]byte, error)
		}{{v4.CreateMergePatch, v4.MergePatch}, {v5.CreateMergePatch, v5.MergePatch}} {
			patch, err := lib.create([]byte(c[0]), []byte(c[1]))
			if err != nil {
				panic(err)
			}
			got, err := lib.apply([]byte(c[0]), patch)
			if err != nil {
				panic(err)
			}
			fmt.Printf("v%d: from %s to %s: patch %s gives %s\n", i+4, c[0], c[1], patch, got)
		}
	}
	three, err := jsonmergepatch.CreateThreeWayJSONMergePatch(
		[]byte(`{"id":1}`), []byte(`{"id":9007199254740993}`), []byte(`{"id":1}`))
	fmt.Printf("apimachinery: from {\"id\":1} to {\"id\":9007199254740993}: patch %s %v\n", three, err)
	kept, _ := v4.MergePatch([]byte(`{}`), []byte(`{"id":9007199254740993}`))
	fmt.Printf("v4: MergePatch alone: %s\n", kept)
}
EOF
go mod init finding 2>/dev/null
go get gopkg.in/evanphx/json-patch.v4@v4.12.0 github.com/evanphx/json-patch/v5@v5.9.11 k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
v4: from {"id":9007199254740992} to {"id":9007199254740993}: patch {} gives {"id":9007199254740992}
v5: from {"id":9007199254740992} to {"id":9007199254740993}: patch {"id":9007199254740993} gives {"id":9007199254740993}
v4: from {"id":1} to {"id":9007199254740993}: patch {"id":9007199254740992} gives {"id":9007199254740992}
v5: from {"id":1} to {"id":9007199254740993}: patch {"id":9007199254740993} gives {"id":9007199254740993}
v4: from {} to {"ids":[9007199254740993]}: patch {"ids":[9007199254740992]} gives {"ids":[9007199254740992]}
v5: from {} to {"ids":[9007199254740993]}: patch {"ids":[9007199254740993]} gives {"ids":[9007199254740993]}
apimachinery: from {"id":1} to {"id":9007199254740993}: patch {"id":9007199254740992} <nil>
v4: MergePatch alone: {"id":9007199254740993}
EOF
diff want out
