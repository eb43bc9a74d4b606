package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// benchGroups commits groups of writes, each as one batch of a driver: nothing else is in it. An
// operation is one row.
func benchGroups(b *testing.B, fresh func(testing.TB) Database, value []byte) {
	for _, size := range []int{1, 4, 32, 256} {
		b.Run(fmt.Sprintf("Group/create/rows=%d", size), func(b *testing.B) {
			benchGroup(b, fresh(b).Open(b), size, func(i int) sqlstore.Op {
				return sqlstore.Op{Verb: sqlstore.Create, Key: pod(fmt.Sprint("c", i*7919%1_000_003)), Value: value}
			})
		})
		b.Run(fmt.Sprintf("Group/update/rows=%d", size), func(b *testing.B) {
			const objects = 1024
			d := fresh(b).Open(b)
			first := make([]sqlstore.Txn, objects)
			for i := range first {
				first[i].Ops = create(pod(fmt.Sprint("u", i)), "{}").Ops
			}
			apply(b, d, first...)
			benchGroup(b, d, size, func(i int) sqlstore.Op {
				return sqlstore.Op{Verb: sqlstore.Update, Key: pod(fmt.Sprint("u", i%objects)), Expect: int64(i + 1), Value: value}
			})
		})
	}
}

func benchGroup(b *testing.B, d sqlstore.Driver, size int, op func(i int) sqlstore.Op) {
	b.ReportAllocs()
	batch := make([]sqlstore.Txn, 0, size)
	groups := 0
	b.ResetTimer()
	before := processor()
	for i := 0; i < b.N; {
		for batch = batch[:0]; len(batch) < size && i < b.N; i++ {
			batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{op(i)}})
		}
		out, err := d.Apply(b.Context(), batch, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		for j := range out {
			if out[j].Err != nil {
				b.Fatal(out[j].Err)
			}
		}
		groups++
	}
	b.StopTimer()
	b.ReportMetric(float64((processor()-before).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(groups), "us/group")
}
