#!/bin/sh
# github.com/open-policy-agent/opa v1.22.3, units.parse_bytes and units.parse, with k8s.io/apimachinery v0.36.2.
#
# Seen: units.parse_bytes takes `m` for mega: "128974848000m", which Kubernetes' documentation has as about 129 MB, is
# 128974848000000000. units.parse knows `m`, and multiplies by a float: 128974848.0000000027. Both are undefined for `n` and
# `u`, and for a number (`cpu: 0.5`), so that a rule which compares them is undefined, and `deny` is empty.
# Expected: the values of Kubernetes' quantities, for which the second was made.
# Who is hurt: policies on requests and limits in Rego: a container within its limit is refused, because the server writes a
# fraction of a byte with `m`, and a large one passes, because its limit was written as a number.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/rego"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, call := range []string{"units.parse_bytes", "units.parse"} {
		for _, value := range []any{"128Mi", "128974848000m", "1e3", "1E", "500u", "250000000n", json.Number("0.5")} {
			quantity := resource.MustParse(fmt.Sprint(value))
			results, err := rego.New(rego.Query("x := "+call+"(input)"), rego.Input(value)).Eval(context.Background())
			if err != nil {
				panic(err)
			}
			got := any("undefined")
			if len(results) > 0 {
				got = results[0].Bindings["x"]
			}
			fmt.Printf("%s(%v): %v, as a quantity %s\n", call, value, got, quantity.AsDec())
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/open-policy-agent/opa@v1.22.3 k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
units.parse_bytes(128Mi): 134217728, as a quantity 134217728
units.parse_bytes(128974848000m): 128974848000000000, as a quantity 128974848.000
units.parse_bytes(1e3): 1000, as a quantity 1000
units.parse_bytes(1E): 1000000000000000000, as a quantity 1000000000000000000
units.parse_bytes(500u): undefined, as a quantity 0.000500
units.parse_bytes(250000000n): undefined, as a quantity 0.250000000
units.parse_bytes(0.5): undefined, as a quantity 0.5
units.parse(128Mi): 134217728, as a quantity 134217728
units.parse(128974848000m): 128974848.0000000027, as a quantity 128974848.000
units.parse(1e3): 1000, as a quantity 1000
units.parse(1E): 1000000000000000000, as a quantity 1000000000000000000
units.parse(500u): undefined, as a quantity 0.000500
units.parse(250000000n): undefined, as a quantity 0.250000000
units.parse(0.5): undefined, as a quantity 0.5
EOF
diff want out
