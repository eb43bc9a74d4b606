#!/bin/sh
# k8s.io/apimachinery v0.32.13 (util/strategicpatch; kubectl patch and the API server) with
# k8s.io/api v0.32.13.
#
# Seen: a strategic merge patch that adds an element to a list puts the new element in FRONT
# of those that are there, both in lists with a merge key (containers) and in lists of plain
# values (finalizers).
# Expected: appended. "Merge" says nothing of an order, and applying a manifest with kubectl,
# which sends the wanted order along ($setElementOrder), does not show it.
# Who is hurt: whoever adds an init container by kubectl patch (it now runs before all
# others, for they run in the order of the list), or a sidecar (kubectl logs and exec take
# the first container when no annotation names another).
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func main() {
	for _, c := range [][2]string{
		{`{"spec":{"initContainers":[{"name":"one"},{"name":"two"}]}}`, `{"spec":{"initContainers":[{"name":"new"}]}}`},
		{`{"spec":{"containers":[{"name":"main"}]}}`, `{"spec":{"containers":[{"name":"sidecar"}]}}`},
		{`{"metadata":{"finalizers":["one","two"]}}`, `{"metadata":{"finalizers":["new"]}}`},
	} {
		got, err := strategicpatch.StrategicMergePatch([]byte(c[0]), []byte(c[1]), corev1.Pod{})
		fmt.Println(string(got), err)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.32.13 k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
{"spec":{"initContainers":[{"name":"new"},{"name":"one"},{"name":"two"}]}} <nil>
{"spec":{"containers":[{"name":"sidecar"},{"name":"main"}]}} <nil>
{"metadata":{"finalizers":["new","one","two"]}} <nil>
EOF
diff want out
