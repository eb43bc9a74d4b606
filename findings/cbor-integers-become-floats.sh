#!/bin/sh
# cbor-x 1.6.9 (npm); k8s.io/apimachinery v0.36.2 (application/cbor of the API server and of client-go).
#
# Seen: cbor-x writes each integer above 2^32-1 as a float, and a property that is undefined as the value "undefined". For a
# typed int64 apimachinery refuses the float, and any body with an undefined property. In a custom resource
# it accepts the float and keeps it one: a client in Go then cannot read the object as CBOR, though it can as JSON.
# Expected: 1700000000000 is an integer, which JSON.stringify writes as such (and it leaves undefined out); and from
# the server a number that reads the same in both forms.
# Who is hurt: whoever moves a client in Node from JSON to CBOR: small numbers pass all tests, times in milliseconds, sizes
# and identifiers do not. And the controller in Go of that kind: one such object makes its whole typed list fail as soon as
# the feature of CBOR is on. (A BigInt is written as an integer.)
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cbor-x@1.6.9 >/dev/null
cat >main.mjs <<'EOF'
import { writeFileSync } from 'node:fs'
import { encode } from 'cbor-x'

const objects = { small: { at: 1700000000 }, large: { at: 1700000000000 }, bigint: { at: 1700000000000n }, undefined: { at: 1, note: undefined } }
for (const [name, object] of Object.entries(objects)) writeFileSync(`${name}.cbor`, encode(object))
EOF
node main.mjs
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

type object struct {
	At   int64  `json:"at"`
	Note string `json:"note"`
}

func show(err error) string {
	if err == nil {
		return "read"
	}
	text, _, _ := strings.Cut(err.Error(), " into Go ")
	return text
}

func main() {
	for _, name := range []string{"small", "large", "bigint", "undefined"} {
		body, err := os.ReadFile(name + ".cbor")
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: as a typed object: %s\n", name, show(direct.Unmarshal(body, &object{})))
		stored := map[string]any{}
		if err := direct.Unmarshal(body, &stored); err != nil {
			fmt.Printf("%s: as a custom resource: %s\n", name, show(err))
			continue
		}
		inJSON, err := json.Marshal(stored)
		if err != nil {
			panic(err)
		}
		inCBOR, err := direct.Marshal(stored)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: as a custom resource: %T %s; back as JSON: %s, as CBOR: %s\n", name, stored["at"], inJSON,
			show(json.Unmarshal(inJSON, &object{})), show(direct.Unmarshal(inCBOR, &object{})))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
small: as a typed object: read
small: as a custom resource: int64 {"at":1700000000}; back as JSON: read, as CBOR: read
large: as a typed object: cbor: cannot unmarshal primitives
large: as a custom resource: float64 {"at":1700000000000}; back as JSON: read, as CBOR: cbor: cannot unmarshal primitives
bigint: as a typed object: read
bigint: as a custom resource: int64 {"at":1700000000000}; back as JSON: read, as CBOR: read
undefined: as a typed object: cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized
undefined: as a custom resource: cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized
EOF
diff want out
