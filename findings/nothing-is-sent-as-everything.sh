#!/bin/sh
# k8s.io/apimachinery v0.37.2 (labels, fields), sigs.k8s.io/controller-runtime v0.25.2.
#
# Seen: the selector that selects nothing is written as the empty text, which selects everything. It is what
# metav1.LabelSelectorAsSelector returns for a nil *LabelSelector, since "a null label selector matches no objects". With a
# client of controller-runtime that reads from the server, List with it asks for all objects, and DeleteAllOf deletes all.
# Expected: no request, or an error, as for any selector that cannot be written.
# Who is hurt: controllers that pass the optional selector of a spec on: where a user left it out, tests with the cache, or
# with Matches, select nothing, and the clean-up against the server deletes all objects of the namespace.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}`))
	}))
	defer server.Close()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
	if err != nil {
		panic(err)
	}
	var spec struct{ Selector *metav1.LabelSelector } // in which the user has stated none
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		panic(err)
	}
	fmt.Printf("matches app=a: %v, empty: %v, written: %q; of fields: %q\n", selector.Matches(labels.Set{"app": "a"}),
		selector.Empty(), selector, fields.Nothing())
	ctx := context.Background()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := c.List(ctx, list, client.InNamespace("a"), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		panic(err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.DeleteAllOf(ctx, object, client.InNamespace("a"), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/apimachinery@v0.37.2 k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
matches app=a: false, empty: false, written: ""; of fields: ""
GET /api/v1/namespaces/a/configmaps
DELETE /api/v1/namespaces/a/configmaps
EOF
diff want out
