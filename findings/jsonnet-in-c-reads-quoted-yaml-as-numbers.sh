#!/bin/sh
# jsonnet 0.18.0 of Debian 12, the implementation in C++; github.com/google/go-jsonnet v0.22.0, std.parseYaml of both.
#
# Seen: jsonnet in C++ drops the quotes of YAML: "1" is the number 1, "1.10" is 1.1, "1e3" is 1000, "true" is a boolean and
# "null" is null, while a plain null, ~ and an empty value are the empty text. A quoted "0400" is an error of the JSON parser.
# Expected: quoted scalars are texts, in every version of YAML, and null is null, as go-jsonnet reads them.
# Who is hurt: configurations that are built with the one on a laptop (apt install jsonnet) and with the other in CI. Labels,
# annotations and environment variables are quoted because they must be texts: what comes out is refused by the
# server, or, in a custom resource or a ConfigMap's inner file, is another value. And a null that removes a key does not.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download jsonnet=0.18.0+ds-3+b2 libjsonnet0=0.18.0+ds-3+b2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >values.jsonnet <<'EOF'
[std.parseYaml('a: ' + text).a for text in ['"1"', '"1.10"', '"1e3"', '"true"', '"null"', 'null', '~', '', '"x"', '"yes"', 'true']]
EOF
printf 'C++: ' >out
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/jsonnet values.jsonnet | tr -d '\n' | tr -s ' ' >>out
echo >>out
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/go-jsonnet"
)

func main() {
	text, err := jsonnet.MakeVM().EvaluateFile("values.jsonnet")
	if err != nil {
		panic(err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(text)); err != nil {
		panic(err)
	}
	fmt.Println("Go: ", line.String())
}
EOF
go mod init finding 2>/dev/null
go get github.com/google/go-jsonnet@v0.22.0 2>/dev/null
go run -mod=mod . >>out
cat out
cat >want <<'EOF'
C++: [ 1, 1.1000000000000001, 1000, true, null, "", "", "", "x", "yes", true]
Go:  ["1","1.10","1e3","true","null",null,null,null,"x","yes",true]
EOF
diff want out
