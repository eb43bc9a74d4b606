#!/bin/sh
# k8s.io/cli-runtime v0.37.2 (how kubectl reads manifests), sigs.k8s.io/kustomize/api v0.21.1.
#
# Seen: kubectl takes each object with a top-level field items for a list, whatever its kind: of a custom resource
# whose items are manifests it applies these, and not the object; with other items it refuses the file, or finds objects
# without a name, of the kind Wish in a WishList. For kustomize the kind's name decides: an object of a kind that ends in
# List is taken apart if it has items, and left out altogether if these are empty, without an error.
# Expected: one object in, one object out. Definitions may have a top-level field items, and kinds such as
# WishList; the API serves both.
# Who is hurt: authors of such kinds: apply works with the one tool and not with the other, and "kubectl apply -f"
# of a bundle creates its contents instead of the bundle.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func kubectl(text string) (names []string, err error) {
	if err := os.WriteFile("object.yaml", []byte(text), 0o600); err != nil {
		panic(err)
	}
	options := &resource.FilenameOptions{Filenames: []string{"object.yaml"}}
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, options).Flatten().Do().Infos()
	for _, info := range infos {
		object := info.Object.(*unstructured.Unstructured)
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	return names, err
}

func kustomize(text string) (names []string, err error) {
	fs := filesys.MakeFsInMemory()
	for name, content := range map[string]string{"kustomization.yaml": "resources: [object.yaml]", "object.yaml": text} {
		if err := fs.WriteFile(name, []byte(content)); err != nil {
			panic(err)
		}
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, ".")
	if err != nil {
		return nil, err
	}
	for _, object := range objects.Resources() {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	return names, nil
}

func main() {
	for _, c := range [][2]string{
		{"Bundle", "[{apiVersion: v1, kind: ConfigMap, metadata: {name: apple}}]"}, {"Basket", "[apple]"}, {"Stock", "{apple: 1}"},
		{"WishList", "[{apiVersion: v1, kind: ConfigMap, metadata: {name: apple}}]"}, {"WishList", "[{fruit: apple}]"}, {"WishList", "[]"},
	} {
		text := fmt.Sprintf("{apiVersion: example.com/v1, kind: %s, metadata: {name: fruit}, items: %s}", c[0], c[1])
		fmt.Printf("%s fruit with the items %s\n", c[0], c[1])
		for _, tool := range []struct {
			name string
			read func(string) ([]string, error)
		}{{"kubectl", kubectl}, {"kustomize", kustomize}} {
			names, err := tool.read(text)
			result := strings.TrimSpace(strings.Join(names, ", "))
			if err != nil {
				result = "error"
			} else if len(names) == 0 {
				result = "no object"
			}
			fmt.Printf("  %s: %s\n", tool.name, result)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/cli-runtime@v0.37.2 sigs.k8s.io/kustomize/api@v0.21.1 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
Bundle fruit with the items [{apiVersion: v1, kind: ConfigMap, metadata: {name: apple}}]
  kubectl: ConfigMap apple
  kustomize: Bundle fruit
Basket fruit with the items [apple]
  kubectl: error
  kustomize: Basket fruit
Stock fruit with the items {apple: 1}
  kubectl: error
  kustomize: Stock fruit
WishList fruit with the items [{apiVersion: v1, kind: ConfigMap, metadata: {name: apple}}]
  kubectl: ConfigMap apple
  kustomize: ConfigMap apple
WishList fruit with the items [{fruit: apple}]
  kubectl: Wish
  kustomize: error
WishList fruit with the items []
  kubectl: no object
  kustomize: no object
EOF
diff want out
