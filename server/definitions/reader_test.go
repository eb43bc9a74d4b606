package definitions_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestReader: a state of a definition is read once for all followers, and equals the result of
// Read; another state, and an uncertain one, is read anew.
func TestReader(t *testing.T) {
	codec := newCluster(t).cache.JSON()
	item := func(name string, revision int64, group string) *cache.Item {
		return cache.NewOwnItem(&sqlstore.Row{
			Key: sqlstore.Key{Resource: definitions.Storage, Name: name}, Revision: revision,
			Value: fmt.Appendf(nil, `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":%q},"spec":{"group":%q,"versions":[{"name":"v1","schema":{"a":1}}]}}`, name, group),
		}, nil)
	}
	if broken := item("a", 1, "one").Err(); broken != nil {
		t.Fatal(broken)
	}
	r := &definitions.Reader{}
	first, digests, err := r.Read(codec, item("a", 1, "one"))
	if err != nil {
		t.Fatal(err)
	}
	want, wantDigests, err := definitions.Read(codec, item("a", 1, "one").Peek())
	if diff := cmp.Diff(want, first); err != nil || diff != "" || !cmp.Equal(wantDigests, digests) {
		t.Errorf("%v %s", err, diff)
	}
	if again, _, _ := r.Read(codec, item("a", 1, "not looked at")); again != first {
		t.Error("the same state is read twice")
	}
	for _, other := range []*cache.Item{item("a", 2, "two"), item("b", 1, "two")} {
		if crd, _, err := r.Read(codec, other); err != nil || crd.Spec.Group != "two" {
			t.Errorf("%s at %d is taken for another: %v, %v", other.Name, other.Revision, crd.Spec.Group, err)
		}
	}
	func() {
		defer func() { _ = recover() }() // as of an object that the cache cannot read
		_, _, _ = r.Read(codec, &cache.Item{Name: "d", Revision: 4})
		t.Error("an item without a body was read")
	}()
	if crd, _, err := r.Read(codec, item("d", 4, "late")); err != nil || crd == nil || crd.Spec.Group != "late" {
		t.Errorf("what could not be read at first stays so: %v, %v", crd, err)
	}
	corrupt := cache.NewItem(codec, &sqlstore.Row{
		Key: sqlstore.Key{Resource: definitions.Storage, Name: "c"}, Revision: 3, Damaged: errors.New("it cannot be decrypted"),
	}, nil)
	_, _, _ = r.Read(codec, corrupt)
	if crd, _, err := r.Read(codec, item("c", 3, "right")); err != nil || crd.Spec.Group != "right" {
		t.Errorf("what was corrupt stays so: %v, %v", crd, err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range int64(200) {
				group := fmt.Sprint(n)
				if crd, _, err := r.Read(codec, item("d", n, group)); err != nil || crd.Spec.Group != group {
					t.Errorf("%d: %v at %d", i, err, n)
				}
			}
		})
	}
	all.Wait()
	var none *definitions.Reader
	if crd, _, err := none.Read(codec, item("a", 1, "three")); err != nil || crd.Spec.Group != "three" {
		t.Error("nobody reads")
	}
}
