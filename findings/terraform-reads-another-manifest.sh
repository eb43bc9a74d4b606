#!/bin/sh
# github.com/zclconf/go-cty-yaml v1.2.0 (yamldecode of Terraform and OpenTofu), compared with sigs.k8s.io/yaml v1.6.0 (kubectl).
#
# Seen: yamldecode reads 0400 as 400, which as a mode of a file is 0620, a date as the text 2024-01-01T00:00:00Z, and 1_000 and 0b11 as texts. kubectl
# reads 256, the date as it is written, 1000 and 3. Neither has an error.
# Expected: the object that `kubectl apply` of the same file makes.
# Who is hurt: `kubernetes_manifest { manifest = yamldecode(file(...)) }`, as the provider's documentation has it: a key of 0400 can be read by the group,
# and written by the owner, and a label or annotation with a date is another one, which a selector of the same chart does not find.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty/json"
	"sigs.k8s.io/yaml"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	for _, text := range []string{"0400", "2024-01-01", "2024-01-01 10:00:00", "0x1F", "0o17", "0b11", "1e3", "1_000", "y", "1:30", "+1", ".5", "9007199254740993"} {
		source := []byte("a: " + text)
		kubectl, err := yaml.YAMLToJSON(source)
		check(err)
		kind, err := ctyyaml.Standard.ImpliedType(source)
		check(err)
		value, err := ctyyaml.Standard.Unmarshal(source, kind)
		check(err)
		terraform, err := json.Marshal(value, kind)
		check(err)
		same := ""
		if string(kubectl) != string(terraform) {
			same = ", another value"
		}
		fmt.Printf("%s: kubectl %s, yamldecode %s%s\n", text, kubectl, terraform, same)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/zclconf/go-cty-yaml@v1.2.0 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
0400: kubectl {"a":256}, yamldecode {"a":400}, another value
2024-01-01: kubectl {"a":"2024-01-01"}, yamldecode {"a":"2024-01-01T00:00:00Z"}, another value
2024-01-01 10:00:00: kubectl {"a":"2024-01-01 10:00:00"}, yamldecode {"a":"2024-01-01T10:00:00Z"}, another value
0x1F: kubectl {"a":31}, yamldecode {"a":31}
0o17: kubectl {"a":15}, yamldecode {"a":15}
0b11: kubectl {"a":3}, yamldecode {"a":"0b11"}, another value
1e3: kubectl {"a":1000}, yamldecode {"a":1000}
1_000: kubectl {"a":1000}, yamldecode {"a":"1_000"}, another value
y: kubectl {"a":true}, yamldecode {"a":true}
1:30: kubectl {"a":"1:30"}, yamldecode {"a":"1:30"}
+1: kubectl {"a":1}, yamldecode {"a":1}
.5: kubectl {"a":0.5}, yamldecode {"a":0.5}
9007199254740993: kubectl {"a":9007199254740993}, yamldecode {"a":9007199254740993}
EOF
diff want out
