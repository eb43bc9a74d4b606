package million_test

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// TestStoredForm: a server that loads the cluster keeps the bytes as they are. If they were another
// form of the same objects, each start would decode and encode all of them.
func TestStoredForm(t *testing.T) {
	types := map[string]runtime.Object{
		"pods": &corev1.Pod{}, "namespaces": &corev1.Namespace{}, "serviceaccounts": &corev1.ServiceAccount{}, "nodes": &corev1.Node{},
		"leases.coordination.k8s.io": &coordinationv1.Lease{}, "replicasets.apps": &appsv1.ReplicaSet{},
	}
	codec := json.New(json.Settings{})
	_, rows, err := archive.Rows(bytes.NewReader(written(t, small)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		id, ok := codec.Canonical(row.Value, types[row.Key.Resource])
		if !ok {
			t.Fatalf("%s is not as it is stored: %s", row.Key, row.Value)
		}
		if id.Name != row.Key.Name || id.Namespace != row.Key.Namespace {
			t.Errorf("%s claims to be %s/%s", row.Key, id.Namespace, id.Name)
		}
		seen[row.Key.Resource] = true
	}
	if len(seen) != len(types) {
		t.Errorf("only %v were looked at", seen)
	}
}
