#!/bin/sh
# k8s.io/apimachinery v0.32.13 (application/cbor of the API server), compared with cbor-x
# 1.6.9 (npm).
#
# Seen: Kubernetes encodes every string and every key of a map as a CBOR byte string (major
# type 2), never as a text string (major type 3). {"a":"b"} is a1 41 61 41 62. A decoder of
# another language has no property names: cbor-x cannot make an object of it at all, and as
# a Map it gives buffers for the keys and the values.
# Expected: a1 61 61 61 62, which RFC 8949 calls text and every JSON-to-CBOR converter
# writes.
# Who is hurt: whoever writes a client for the CBOR media type with a stock library: "the
# API in CBOR" is not the API's JSON in CBOR, and data that really is bytes (a Secret's
# values, base64 in JSON) cannot be told from a string without the tag.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

func main() {
	text, err := direct.Marshal(map[string]any{"a": "b"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%x\n", text)
}
EOF
cat >main.mjs <<'EOF'
import { Decoder, decode, encode } from 'cbor-x'
const bytes = Buffer.from(process.argv[2], 'hex')
try { console.log('as an object:', decode(bytes)) } catch (e) { console.log('as an object:', e.message) }
const [[key, value]] = new Decoder({ mapsAsObjects: false }).decode(bytes)
console.log('as a Map: key is text:', typeof key === 'string', 'value is text:', typeof value === 'string')
console.log('decodes text strings:', JSON.stringify(decode(Buffer.from('a161616162', 'hex'))))
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.32.13 2>/dev/null
npm install --silent --no-save --prefix . cbor-x@1.6.9 >/dev/null
{ hex=$(go run -mod=mod .); echo "Kubernetes writes $hex"; node main.mjs "$hex"; } | tee out
cat >want <<'EOF'
Kubernetes writes a141614162
as an object: Invalid property name type object
as a Map: key is text: false value is text: false
decodes text strings: {"a":"b"}
EOF
diff want out
