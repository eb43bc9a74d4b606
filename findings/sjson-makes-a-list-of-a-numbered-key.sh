#!/bin/sh
# github.com/tidwall/sjson v1.2.9 (sets a value in JSON by a path).
#
# Seen: if the parent is not there yet, or is null, a key of digits makes a list: `data.3` in a ConfigMap without data is [null,null,null,"x"], and an object if there
# is any other key. A path with # (each item, or the one with a name), as gjson reads it, sets nothing and is no error. "*" and "?" in a path are patterns, and the
# first key that fits is replaced.
# Expected: an object for `data`, an error for what cannot be set, as Delete has it ("cannot delete value from a complex path").
# Who is hurt: programs that patch manifests by paths of their users: the first port or index as a key of a ConfigMap or a label is a list, which the server refuses
# in a built-in kind and keeps in a custom one; and "set the image of the container with this name" reports success and has changed nothing.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/tidwall/sjson"
)

func main() {
	for _, c := range [][2]string{
		{`{"kind":"ConfigMap"}`, "data.3"},
		{`{"kind":"ConfigMap","data":null}`, "data.3"},
		{`{"kind":"ConfigMap","data":{"a":"b"}}`, "data.3"},
		{`{"containers":[{"name":"web"},{"name":"log"}]}`, `containers.#(name=="log").image`},
		{`{"containers":[{"name":"web"},{"name":"log"}]}`, "containers.#.image"},
		{`{"labels":{"app":"web","team":"shop"}}`, "labels.te*"},
	} {
		out, err := sjson.Set(c[0], c[1], "x")
		fmt.Printf("%s, %s: %s, error: %v\n", c[0], c[1], out, err)
	}
	_, err := sjson.Delete(`{"containers":[{"name":"web"}]}`, `containers.#(name=="web")`)
	fmt.Println("Delete by a query:", err)
}
END
go mod init finding 2>/dev/null
go get github.com/tidwall/sjson@v1.2.9 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
{"kind":"ConfigMap"}, data.3: {"kind":"ConfigMap","data":[null,null,null,"x"]}, error: <nil>
{"kind":"ConfigMap","data":null}, data.3: {"kind":"ConfigMap","data":[null,null,null,"x"]}, error: <nil>
{"kind":"ConfigMap","data":{"a":"b"}}, data.3: {"kind":"ConfigMap","data":{"a":"b","3":"x"}}, error: <nil>
{"containers":[{"name":"web"},{"name":"log"}]}, containers.#(name=="log").image: {"containers":[{"name":"web"},{"name":"log"}]}, error: <nil>
{"containers":[{"name":"web"},{"name":"log"}]}, containers.#.image: {"containers":[{"name":"web"},{"name":"log"}]}, error: <nil>
{"labels":{"app":"web","team":"shop"}}, labels.te*: {"labels":{"app":"web","team":"x"}}, error: <nil>
Delete by a query: cannot delete value from a complex path
END
diff want out
