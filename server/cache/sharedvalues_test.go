package cache_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestSharedValues: objects that were loaded from a cache file share the values of their indexed fields, which readers, selectors and
// later files have all the same.
func TestSharedValues(t *testing.T) {
	const n, nodes = 1200, 20
	v, path := newAttesting(), filepath.Join(t.TempDir(), "file")
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	write := func(c *cache.Cache, i, node int) {
		name := fmt.Sprintf("p%d", i)
		value := strings.TrimSuffix(largePod(name, i), "}")
		value = strings.Replace(value, fmt.Sprintf(`"nodeName":"n%d"`, i%50), fmt.Sprintf(`"nodeName":"n%d%s"`, node, strings.Repeat("x", 200)), 1) + "}"
		c.Apply([]sqlstore.Change{v.write("ns", name, value)})
	}
	for i := range n {
		write(c, i, i%nodes)
	}
	pack(t, c)
	for round := range 3 {
		if _, err := c.WriteFile(t.Context(), v.config(path), v); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("round %d, after the file was written", round), c, hot(t, v))
		c, _ = loadedFrom(t, v, path)
		if inMemory, bytes := values(c); inMemory > 0 || bytes > n*64 {
			t.Errorf("round %d: %d values are in memory; objects take %d bytes", round, inMemory, bytes)
		}
		same(t, fmt.Sprintf("round %d, after a start", round), c, hot(t, v))
		node := "n3" + strings.Repeat("x", 200)
		f := cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: node}})
		if got := len(names(c.Snapshot("pods"), f, "", "", "")); got != n/nodes+round {
			t.Errorf("round %d: %d objects are on the node", round, got)
		}
		write(c, round*nodes, 3) // from another node
		write(c, round*nodes+1, round+nodes)
	}
}
