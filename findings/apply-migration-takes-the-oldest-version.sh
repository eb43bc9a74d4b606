#!/bin/sh
# k8s.io/client-go v0.37.2 (util/csaupgrade, which kubectl apply --server-side and controllers use to move an object from client-side to
# server-side apply) and k8s.io/apimachinery v0.37.2 (the bookkeeping of the API server).
#
# Seen: if `kubectl apply` wrote an object in two API versions, it has two entries in managedFields. csaupgrade keeps the first of them and drops
# the other; its comment expects the most recent entry to be the first. The API server writes them the other way round, the oldest first.
# What the newer version set has no owner then: a server-side apply without this field leaves it where it is.
# Expected: the most recent entry, or both.
# Who is hurt: objects that have lived through a change of version (autoscaling/v1 to v2, extensions to networking.k8s.io) and are then moved
# to server-side apply: fields that are taken out of the manifest stay in the cluster, without a conflict or a warning.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// versions converts between versions that have the same fields.
type versions struct{}

func (versions) Convert(_, _, _ any) error { return errors.New("not supported") }

func (versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok {
		return nil, fmt.Errorf("no version for %v", to)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

func (versions) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (versions) Default(runtime.Object) {}

func (versions) New(schema.GroupVersionKind) (runtime.Object, error) { return &unstructured.Unstructured{}, nil }

func manager(version string) *managedfields.FieldManager {
	kind := schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Scaler"}
	m, err := managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), versions{}, versions{}, versions{}, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	return m
}

func scaler(version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "Scaler",
		"metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": spec}}
}

func must(object runtime.Object, err error) *unstructured.Unstructured {
	if err != nil {
		panic(err)
	}
	return object.DeepCopyObject().(*unstructured.Unstructured)
}

func show(text string, object *unstructured.Unstructured) {
	fmt.Println(text)
	for _, entry := range object.GetManagedFields() {
		fmt.Printf("  %s %s %s: %s\n", entry.Manager, entry.Operation, entry.APIVersion, entry.FieldsV1)
	}
}

func main() {
	const client = "kubectl-client-side-apply"
	live := must(manager("v1").Update(scaler("v1", nil), scaler("v1", map[string]any{"max": int64(5)}), client))
	time.Sleep(1100 * time.Millisecond)
	live.SetAPIVersion("example.com/v2")
	next := scaler("v2", map[string]any{"max": int64(5), "pause": true})
	next.SetManagedFields(live.GetManagedFields())
	live = must(manager("v2").Update(live, next, client))
	show("as the API server has it", live)
	if err := csaupgrade.UpgradeManagedFields(live, sets.New(client), "kubectl"); err != nil {
		panic(err)
	}
	show("after the upgrade", live)
	applied := must(manager("v2").Apply(live, scaler("v2", map[string]any{"max": int64(5)}), "kubectl", true))
	fmt.Println("after an apply without pause:", applied.Object["spec"])
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
as the API server has it
  kubectl-client-side-apply Update example.com/v1: {"f:spec":{"f:max":{}}}
  kubectl-client-side-apply Update example.com/v2: {"f:spec":{"f:pause":{}}}
after the upgrade
  kubectl Apply example.com/v1: {"f:spec":{"f:max":{}}}
after an apply without pause: map[max:5 pause:true]
EOF
diff want out
