package million_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/e2e/bench/million"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

var small = million.Shape{Pods: 2000, Seed: 7}

func written(t *testing.T, s million.Shape) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSameShapeIsTheSameFile(t *testing.T) {
	one := written(t, small)
	if !bytes.Equal(one, written(t, small)) {
		t.Error("the same shape was written in two ways")
	}
	if bytes.Equal(one, written(t, million.Shape{Pods: 2000, Seed: 8})) {
		t.Error("another seed gives the same file")
	}
}

// object has the fields that the test checks in each row.
type object struct {
	Metadata metav1.ObjectMeta
	Spec     struct{ NodeName string }
}

func TestCluster(t *testing.T) {
	_, rows, err := archive.Rows(bytes.NewReader(written(t, small)))
	if err != nil {
		t.Fatal(err)
	}
	selector, err := labels.Parse(million.TierLabel)
	if err != nil {
		t.Fatal(err)
	}
	count, uids, perNode, edge, size := map[string]int{}, map[string]bool{}, map[string]int{}, 0, 0
	var owners []metav1.OwnerReference
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := json.Unmarshal(row.Value, &o); err != nil {
			t.Fatalf("%s: %v", row.Key, err)
		}
		if o.Metadata.Name != row.Key.Name || o.Metadata.Namespace != row.Key.Namespace {
			t.Errorf("%s holds %s/%s", row.Key, o.Metadata.Namespace, o.Metadata.Name)
		}
		if uid := string(o.Metadata.UID); uid == "" || uids[uid] {
			t.Errorf("%s has the UID %q, which another one has, too", row.Key, uid)
		} else {
			uids[uid] = true
		}
		count[row.Key.Resource]++
		owners = append(owners, o.Metadata.OwnerReferences...)
		if row.Key.Resource == "pods" {
			size += len(row.Value)
			perNode[o.Spec.NodeName]++
			if selector.Matches(labels.Set(o.Metadata.Labels)) {
				edge++
			}
		}
	}
	for resource, want := range map[string]int{"pods": 2000, "namespaces": 10, "serviceaccounts": 10, "nodes": 200, "leases.coordination.k8s.io": 200, "replicasets.apps": 100} {
		if count[resource] != want {
			t.Errorf("%d %s, want %d", count[resource], resource, want)
		}
	}
	if edge != 200 {
		t.Errorf("%s selects %d of 2000 Pods", million.TierLabel, edge)
	}
	for node, n := range perNode {
		if n != 10 {
			t.Errorf("%d Pods on %s", n, node)
		}
	}
	if each := size / 2000; each < 3900 || each > 4300 {
		t.Errorf("a Pod has %d bytes, and should have about 4,096", each)
	}
	for _, o := range owners {
		if !uids[string(o.UID)] {
			t.Errorf("the owner %s %s is not there", o.Kind, o.Name)
		}
	}
}

func TestPodName(t *testing.T) {
	for _, i := range []int{0, 19, 20, 1999} {
		if got, want := small.PodName(i), small.Pod(i).Name; got != want {
			t.Errorf("Pod %d has the name %s, but reports %s", i, want, got)
		}
	}
}

// TestNoNameTwice: names are as random as those of a cluster, and yet all of a million differ.
func TestNoNameTwice(t *testing.T) {
	large := million.Shape{Pods: 300_000, Seed: 1}
	// Two of these drew the same letters, in the cluster of the benchmark.
	const first, last = 258_720, 258_740
	seen := map[string]int{}
	for i := first; i < last; i++ {
		if other, twice := seen[large.PodName(i)]; twice {
			t.Errorf("Pods %d and %d are both %s", other, i, large.PodName(i))
		}
		seen[large.PodName(i)] = i
	}
}

func TestFileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	if err := small.File(path); err != nil {
		t.Fatal(err)
	}
	if err := small.File(path); err != nil {
		t.Errorf("its own file: %v", err)
	}
	if err := (million.Shape{Pods: 2000, Seed: 8}).File(path); !errors.Is(err, million.ErrOther) {
		t.Errorf("another one's file: %v", err)
	}
}
