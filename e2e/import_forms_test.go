package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
)

// asSnapshot makes a snapshot of etcd that holds what a file of kine does, byte by byte.
func asSnapshot(t *testing.T, path, dir string) string {
	t.Helper()
	from, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	target := filepath.Join(dir, "snapshot.db")
	to, err := etcd.CreateSnapshot(target, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range from.Entries(t.Context()) {
		if err == nil {
			err = to.Put(t.Context(), e)
		}
		if err != nil {
			t.Fatal(err, to.Abort())
		}
	}
	if err := to.Commit(t.Context(), from.Revision()); err != nil {
		t.Fatal(err)
	}
	return target
}

// sameExported takes everything out of a database again, and compares each object with what
// the old cluster kept: under the same key, of the same revision, in the form of a stock server.
func sameExported(t *testing.T, url, form string, objects []arrived) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	var source foreign.Source
	var err error
	if form == "kine" {
		export(t, "kine", "sqlite:"+path, "--store", url)
		source, err = kine.OpenSQLite(t.Context(), path)
	} else {
		export(t, form, path, "--store", url)
		source, err = etcd.OpenSnapshot(t.Context(), path, etcd.SnapshotOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	missing := map[string]arrived{}
	for _, o := range objects {
		missing[o.key] = o
	}
	for e, err := range source.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		o, known := missing[e.Key]
		if !known {
			continue // written by earlier commands, and compared elsewhere
		}
		delete(missing, e.Key)
		if diff := cmp.Diff(o.want, storedTree(t, o, e)); diff != "" {
			t.Errorf("%s as %s: %s", e.Key, form, diff)
		}
	}
	if len(missing) > 0 || len(objects) < 50 {
		t.Errorf("of %d objects are missing: %v", len(objects), slices.Sorted(maps.Keys(missing)))
	}
}

// storedTree returns the tree of an object as a stock server keeps it, with its revision.
func storedTree(t *testing.T, o arrived, e foreign.Entry) any {
	t.Helper()
	var tree any
	if o.kind == nil {
		tree = treeOf(t, e.Value)
	} else {
		obj := o.kind.NewStored()
		if _, err := (protobuf.Codec{}).Decode(e.Value, obj, codecs.Strict); err != nil || !strings.HasPrefix(string(e.Value), "k8s\x00") {
			t.Fatalf("%s: %v, %q", e.Key, err, e.Value[:min(len(e.Value), 8)])
		}
		if set, ok := obj.(*appsv1.StatefulSet); ok { // whose templates have kinds when they are read: Protobuf holds none
			for i := range set.Spec.VolumeClaimTemplates {
				set.Spec.VolumeClaimTemplates[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
			}
		}
		tree = shown(t, obj)
	}
	tree.(map[string]any)["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(e.ModRevision)
	return tree
}
