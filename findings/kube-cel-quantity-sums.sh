#!/bin/sh
# k8s.io/apiserver v0.37.2, the library of CEL functions for quantities (validation rules of custom resources and
# admission policies of Kubernetes since 1.28).
#
# Seen: the result of add and sub is equal to a quantity only on the left of ==. On the right it is an error, "no such
# overload"; "in" finds no such value in a list, and indexOf is -1, without an error. The sum is a pointer to the
# type whose Equal looks for the type itself. And isInteger is false for 1.0 and for 1000m, which are equal to 1; asInteger
# is an error for them, where its documentation has errors only for "overflow or loss of precision".
# Expected: a == b if b == a; 1000m is the integer 1. (All examples of the library have the sum on the left.)
# Who is hurt: authors of rules such as quantity(self.total) == quantity(self.a).add(quantity(self.b)): each write is
# refused, for a reason that names no field. And rules with asInteger refuse 1000m and 1.0, which users and other
# controllers write for 1.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

const sum = `quantity("0.5").add(quantity("0.5"))`

func main() {
	env := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).StoredExpressionsEnv()
	for _, expression := range []string{
		sum + ` == quantity("1")`,
		`quantity("1") == ` + sum,
		`quantity("1").compareTo(` + sum + `) == 0`,
		`quantity("1") in [` + sum + `]`,
		`[quantity("1")].indexOf(` + sum + `)`,
		`quantity("1000m") == quantity("1")`,
		`quantity("1").isInteger()`,
		`quantity("1.0").isInteger()`,
		`quantity("1000m").isInteger()`,
		`quantity("1000m").asInteger()`,
	} {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{})
		if err != nil {
			fmt.Printf("%s: error: %v\n", expression, err)
			continue
		}
		fmt.Printf("%s: %v\n", expression, value.Value())
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiserver@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
quantity("0.5").add(quantity("0.5")) == quantity("1"): true
quantity("1") == quantity("0.5").add(quantity("0.5")): error: no such overload
quantity("1").compareTo(quantity("0.5").add(quantity("0.5"))) == 0: true
quantity("1") in [quantity("0.5").add(quantity("0.5"))]: false
[quantity("1")].indexOf(quantity("0.5").add(quantity("0.5"))): -1
quantity("1000m") == quantity("1"): true
quantity("1").isInteger(): true
quantity("1.0").isInteger(): false
quantity("1000m").isInteger(): false
quantity("1000m").asInteger(): error: cannot convert value to integer
EOF
diff want out
