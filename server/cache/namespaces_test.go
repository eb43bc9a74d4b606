package cache_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestNamespacesOfChanges: the items of changes share the names of their namespaces, and hold on to no key of a change.
func TestNamespacesOfChanges(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	namespaces := map[string]*byte{}
	for _, at := range [][2]string{{"one", "p1"}, {"two", "p1"}, {"one", "p0"}, {"three", "p"}, {"one", "p2"}, {"two", "p2"}, {"two", "p0"}, {"one", "p1"}} {
		namespace := strings.Clone(at[0])
		c.Apply([]sqlstore.Change{l.write(namespace, at[1], pod(at[1], "", ""))})
		it := c.Get("pods", at[0], at[1])
		if it == nil || it.Namespace != at[0] {
			t.Fatalf("%v: %v", at, it)
		}
		data := unsafe.StringData(it.Namespace)
		if known := namespaces[at[0]]; known != nil && known != data || data == unsafe.StringData(namespace) {
			t.Errorf("%v: the item does not share its namespace with others, or does so with its change", at)
		}
		namespaces[at[0]] = data
	}
}
