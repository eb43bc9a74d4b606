#!/bin/sh
# k8s.io/client-go v0.37.2, its fake dynamic client, and k8s.io/apimachinery v0.37.2 (UnsafeGuessKindToResource).
#
# Seen: objects that a fake client is made with are filed under a guessed plural: a Gateway under "gatewaies", a Mesh under "meshs", an
# Index under "indexs". A list of gateways, meshes and indexes is empty, and Get is "not found", though the client was given
# the resource and its list kind. An object that is created through the client is found.
# Expected: the resource that the caller has named for the kind's list.
# Who is hurt: authors of controllers for the Gateway API and for such kinds: their tests see an empty cluster, so a test that nothing is
# deleted or created passes, and others fail for no visible reason.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func main() {
	ctx := context.Background()
	for _, c := range [][2]string{{"Route", "routes"}, {"Policy", "policies"}, {"Gateway", "gateways"}, {"Mesh", "meshes"}, {"Index", "indexes"}} {
		resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: c[1]}
		object := func(name string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": c[0],
				"metadata": map[string]any{"name": name, "namespace": "n"}}}
		}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{resource: c[0] + "List"}, object("given")).Resource(resource).Namespace("n")
		_, err := client.Get(ctx, "given", metav1.GetOptions{})
		given, listErr := client.List(ctx, metav1.ListOptions{})
		if listErr != nil {
			panic(listErr)
		}
		if _, err := client.Create(ctx, object("created"), metav1.CreateOptions{}); err != nil {
			panic(err)
		}
		created, listErr := client.List(ctx, metav1.ListOptions{})
		if listErr != nil {
			panic(listErr)
		}
		fmt.Printf("%s: get %v, list %d, after a create %d\n", c[0], err, len(given.Items), len(created.Items))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 k8s.io/apimachinery@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
Route: get <nil>, list 1, after a create 2
Policy: get <nil>, list 1, after a create 2
Gateway: get gateways.example.com "given" not found, list 0, after a create 1
Mesh: get meshes.example.com "given" not found, list 0, after a create 1
Index: get indexes.example.com "given" not found, list 0, after a create 1
EOF
diff want out
