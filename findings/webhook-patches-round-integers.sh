#!/bin/sh
# gomodules.xyz/jsonpatch/v2 v2.4.0, with which sigs.k8s.io/controller-runtime (v0.25.2, admission.PatchResponseFromRaw) makes the patch of a
# mutating webhook from the object before and after.
#
# Seen: both objects are read as float64. A change between two integers above 2^53 that round to the same number makes no patch; an
# integer that is set or added arrives rounded; and of a text with all digits, 1700000000000000001 is 1700000000000000000.
# Expected: the integers as they are; the API server, the typed object and encoding/json of it have all digits.
# Who is hurt: webhooks for custom resources with times in nanoseconds, identities or sizes in int64: the webhook's own test sees the
# right object, and the stored one has another number, or the old one, without an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
)

func main() {
	for _, c := range [][2]string{
		{`{"spec":{"id":9007199254740992}}`, `{"spec":{"id":9007199254740993}}`},
		{`{"spec":{"id":1}}`, `{"spec":{"id":9007199254740993}}`},
		{`{"spec":{}}`, `{"spec":{"at":1700000000000000001}}`},
	} {
		patch, err := jsonpatch.CreatePatch([]byte(c[0]), []byte(c[1]))
		if err != nil {
			panic(err)
		}
		data, err := json.Marshal(patch)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s to %s: %s\n", c[0], c[1], data)
	}
}
EOF
go mod init finding 2>/dev/null
go get gomodules.xyz/jsonpatch/v2@v2.4.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
{"spec":{"id":9007199254740992}} to {"spec":{"id":9007199254740993}}: []
{"spec":{"id":1}} to {"spec":{"id":9007199254740993}}: [{"op":"replace","path":"/spec/id","value":9007199254740992}]
{"spec":{}} to {"spec":{"at":1700000000000000001}}: [{"op":"add","path":"/spec/at","value":1700000000000000000}]
EOF
diff want out
