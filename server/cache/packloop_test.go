package cache_test

import (
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// BenchmarkPackLooks is a round of packing that finds nothing to pack among a million small objects, with its pauses.
func BenchmarkPackLooks(b *testing.B) {
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 10 << 30, RingEvents: 10})
	var group []sqlstore.Change
	for i := range 1_000_000 {
		key := sqlstore.Key{Resource: "pods", Namespace: fmt.Sprint("ns", i%100), Name: fmt.Sprintf("p%06d", i*7919%1_000_003)}
		value := within(key.Namespace, pod(key.Name, fmt.Sprint("n", i%5000), fmt.Sprintf(`"app":"a%d"`, i%10)))
		group = append(group, sqlstore.Change{Row: sqlstore.Row{Key: key, Revision: int64(i + 1), Created: int64(i + 1), Value: []byte(value)}})
		if len(group) == 1000 {
			c.Apply(group)
			group = group[:0]
		}
	}
	for b.Loop() {
		c.Pack(b.Context())
	}
}
