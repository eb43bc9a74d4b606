package memory_test

import (
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// A clone and its first write cost the same, however much the database holds.
func BenchmarkClone(b *testing.B) {
	for _, objects := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			db := memory.New(memory.Config{})
			d := db.Open()
			defer d.Close()
			key := func(i int) sqlstore.Key {
				return sqlstore.Key{Resource: "pods", Namespace: "a", Name: fmt.Sprint(i)}
			}
			for i := 0; i < objects; {
				var batch []sqlstore.Txn
				for ; len(batch) < 1000 && i < objects; i++ {
					batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key(i), Value: make([]byte, 100)}}})
				}
				if _, err := d.Apply(b.Context(), batch, start); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				clone := db.Clone().Open()
				out, err := clone.Apply(b.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: key(7), Expect: 8, Value: make([]byte, 100)}}}}, start)
				if err != nil || out[0].Err != nil {
					b.Fatal(err, out)
				}
				clone.Close()
			}
		})
	}
}
