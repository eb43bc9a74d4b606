package cache_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestForgetsKindsThatAreGone: nothing holds the storage of a kind, and so the schemas of its definition once the catalogue does
// not have it. It is there again with the next definition.
func TestForgetsKindsThatAreGone(t *testing.T) {
	catalogue := podCatalogue()
	storage := weak.Make(catalogue.ByStorage("pods").Storage)
	c := cache.New(catalogue)
	l := newLog()
	onOne := func() []string {
		return names(c.Snapshot("pods"), cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: "n1"}}), "", "", "")
	}
	onOne()
	catalogue.Set(nil)
	c.Forget()
	for deadline := time.Now().Add(2 * time.Minute); storage.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the storage of a kind that is gone is still held")
		}
	}
	catalogue.Set(podCatalogue().Known())
	c.Apply([]sqlstore.Change{l.write("a", "x", pod("x", "n1", "")), l.write("a", "y", pod("y", "n2", ""))})
	if got := onOne(); !slices.Equal(got, []string{"a/x"}) {
		t.Fatalf("on n1 are %v", got)
	}
}
