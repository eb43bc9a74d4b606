#!/bin/sh
# github.com/goccy/go-yaml v1.19.2, YAMLToJSON, beside sigs.k8s.io/yaml v1.6.0, with which kubectl reads.
#
# Seen: the JSON of a mapping that overrides a merged key has the key twice; `.inf` is written as it is, which is no JSON; `!!binary`
# is a list of numbers. None of these is an error. `1e3`, `08`, `y` and integers of more than 64 bits are texts, where kubectl
# has numbers and a boolean.
# Expected: valid JSON with one value a key, or an error; for manifests, kubectl's values.
# Who is hurt: tools that move to this library because yaml.v3 is no longer kept: a server that validates strictly refuses the
# object with "duplicate field", which is in no line of the file, others take the last value; and a check of a manifest
# sees other types than the cluster will.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	goccy "github.com/goccy/go-yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, text := range []string{
		"defaults: &x {replicas: 1}\nspec:\n  <<: *x\n  replicas: 3\n",
		"v: .inf\n", "v: !!binary YQ==\n", "v: 1e3\n", "v: 08\n", "v: y\n", "v: 18446744073709551616\n", "v: 0400\n",
	} {
		fmt.Printf("%q\n", text)
		for _, library := range []struct {
			name   string
			toJSON func([]byte) ([]byte, error)
		}{{"goccy", goccy.YAMLToJSON}, {"sigs", yaml.YAMLToJSON}} {
			data, err := library.toJSON([]byte(text))
			if err != nil {
				fmt.Printf(" %s: error\n", library.name)
				continue
			}
			fmt.Printf(" %s: %s, valid: %v\n", library.name, strings.TrimSpace(string(data)), json.Valid(data))
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/goccy/go-yaml@v1.19.2 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
"defaults: &x {replicas: 1}\nspec:\n  <<: *x\n  replicas: 3\n"
 goccy: {"defaults": {"replicas": 1}, "spec": {"replicas": 1, "replicas": 3}}, valid: true
 sigs: {"defaults":{"replicas":1},"spec":{"replicas":3}}, valid: true
"v: .inf\n"
 goccy: {"v": .inf}, valid: false
 sigs: error
"v: !!binary YQ==\n"
 goccy: {"v": [97]}, valid: true
 sigs: {"v":"a"}, valid: true
"v: 1e3\n"
 goccy: {"v": "1e3"}, valid: true
 sigs: {"v":1000}, valid: true
"v: 08\n"
 goccy: {"v": "08"}, valid: true
 sigs: {"v":8}, valid: true
"v: y\n"
 goccy: {"v": "y"}, valid: true
 sigs: {"v":true}, valid: true
"v: 18446744073709551616\n"
 goccy: {"v": "18446744073709551616"}, valid: true
 sigs: {"v":18446744073709552000}, valid: true
"v: 0400\n"
 goccy: {"v": 256}, valid: true
 sigs: {"v":256}, valid: true
EOF
diff want out
