#!/bin/sh
# k8s.io/apimachinery v0.32.13 (resource.Quantity).
#
# Seen: quantities with a binary suffix are capped at 2^63-1, without an error, and those
# with a decimal suffix are not. So 16Ei (1.8e19) compares less than 10E (1e19), 16Ei equals
# 8Ei, and a sum of two quantities may be greater than any that can be written with Ei.
# Expected: one rule for both. The type's comment says that numbers that are larger "will
# be capped", and names no difference between suffixes.
# Who is hurt: users of a CRD that allows such sizes, quota code, and checks of the form "request at
# most limit" where the two are written with unlike suffixes: a limit above the request is
# refused, or the reverse accepted.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, pair := range [][2]string{{"16Ei", "10E"}, {"16Ei", "8Ei"}, {"100E", "10E"}} {
		a, b := resource.MustParse(pair[0]), resource.MustParse(pair[1])
		fmt.Printf("%s is written %s, %s is written %s, compare: %d\n", pair[0], a.String(), pair[1], b.String(), a.Cmp(b))
	}
	sum := resource.MustParse("8Ei")
	sum.Add(resource.MustParse("8Ei"))
	cap := resource.MustParse("16Ei")
	fmt.Printf("8Ei + 8Ei is written %s, compared with 16Ei: %d\n", sum.String(), sum.Cmp(cap))
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
16Ei is written 9223372036854775807, 10E is written 10E, compare: -1
16Ei is written 9223372036854775807, 8Ei is written 9223372036854775807, compare: 0
100E is written 100E, 10E is written 10E, compare: 1
8Ei + 8Ei is written 18446744073709551614, compared with 16Ei: 1
EOF
diff want out
