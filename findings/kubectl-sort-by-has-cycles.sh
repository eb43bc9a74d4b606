#!/bin/sh
# k8s.io/kubectl v0.32.13 (kubectl get --sort-by).
#
# Seen: two strings that both parse as a quantity are compared as quantities, any other two
# as text. That is no order: 20 is less than 1k (1000), 1k is less than 1x as text, and 1x
# is less than 20 as text. The result depends on the order in which the server sent the
# objects: one set of three gives different results.
# Expected: names and labels sorted as text, as kubectl sorts every other list of names; a
# quantity has its own branch in the code for fields that are known to be quantities.
# Who is hurt: scripts that take the last line of kubectl get --sort-by=.metadata.name where
# names or label values begin with a digit (tenants, commits, dates, versions): names such
# as 1k, 12e5, 5m and 007 are legal and land in places that change.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/cmd/get"
)

func main() {
	results := map[string]bool{}
	for _, names := range [][]string{
		{"20", "1k", "1x"}, {"20", "1x", "1k"}, {"1k", "20", "1x"},
		{"1k", "1x", "20"}, {"1x", "20", "1k"}, {"1x", "1k", "20"},
	} {
		var objects []runtime.Object
		for _, name := range names {
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}})
		}
		sort.Sort(get.NewRuntimeSort("{.metadata.name}", objects))
		var sorted []string
		for _, o := range objects {
			sorted = append(sorted, o.(*unstructured.Unstructured).GetName())
		}
		fmt.Printf("%v sorted: %v\n", names, sorted)
		results[strings.Join(sorted, " ")] = true
	}
	fmt.Println("different results for one set:", len(results) > 1)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
grep -qx 'different results for one set: true' out
