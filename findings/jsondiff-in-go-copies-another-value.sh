#!/bin/sh
# github.com/wI2L/jsondiff v0.7.1 with Factorize(), applied with gopkg.in/evanphx/json-patch.v4 v4.13.0, the library of the API server.
#
# Seen: Factorize replaces an added value by a "copy" of an equal one in the document, and finds it by a hash in which null and false are the same, as are
# true and [true]: a field that is added as null is copied from a false one, so that the patch writes false, and an item true becomes [true]. Without Factorize the
# patch is right. The library applies no patch itself and has no check of it.
# Expected: a patch that leads from the first document to the second.
# Who is hurt: controllers and webhooks that want short patches: `hostNetwork: false` and a new field with null in one object are enough, the patch is valid, and
# what is stored is not what the code has made.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/wI2L/jsondiff"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, c := range [][2]string{
		{`{"paused":false}`, `{"limit":null,"paused":false}`},
		{`{"flags":[[true]]}`, `{"flags":[[true],true]}`},
		{`{"old":"web"}`, `{"new":"web","old":"web"}`},
	} {
		for _, options := range [][]jsondiff.Option{nil, {jsondiff.Factorize()}} {
			patch, err := jsondiff.CompareJSON([]byte(c[0]), []byte(c[1]), options...)
			if err != nil {
				panic(err)
			}
			body, err := json.Marshal(patch)
			if err != nil {
				panic(err)
			}
			decoded, err := jsonpatch.DecodePatch(body)
			if err != nil {
				panic(err)
			}
			got, err := decoded.Apply([]byte(c[0]))
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s to %s, Factorize %v: %s\n  %s, right: %v\n", c[0], c[1], options != nil, body, got, jsonpatch.Equal(got, []byte(c[1])))
		}
	}
}
END
go mod init finding 2>/dev/null
go get github.com/wI2L/jsondiff@v0.7.1 gopkg.in/evanphx/json-patch.v4@v4.13.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
{"paused":false} to {"limit":null,"paused":false}, Factorize false: [{"value":null,"op":"add","path":"/limit"}]
  {"limit":null,"paused":false}, right: true
{"paused":false} to {"limit":null,"paused":false}, Factorize true: [{"op":"copy","from":"/paused","path":"/limit"}]
  {"limit":false,"paused":false}, right: false
{"flags":[[true]]} to {"flags":[[true],true]}, Factorize false: [{"value":true,"op":"add","path":"/flags/-"}]
  {"flags":[[true],true]}, right: true
{"flags":[[true]]} to {"flags":[[true],true]}, Factorize true: [{"op":"copy","from":"/flags/0","path":"/flags/-"}]
  {"flags":[[true],[true]]}, right: false
{"old":"web"} to {"new":"web","old":"web"}, Factorize false: [{"value":"web","op":"add","path":"/new"}]
  {"new":"web","old":"web"}, right: true
{"old":"web"} to {"new":"web","old":"web"}, Factorize true: [{"op":"copy","from":"/old","path":"/new"}]
  {"new":"web","old":"web"}, right: true
END
diff want out
