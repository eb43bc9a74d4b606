package storetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// discard is a sink that does nothing.
type discard struct{}

func (discard) Apply([]sqlstore.Change) {}

// Bench runs the benchmarks that drivers share.
func Bench(b *testing.B, fresh func(testing.TB) Database) {
	value := append(append([]byte(`{"data":"`), bytes.Repeat([]byte("a"), 1000)...), `"}`...)
	for _, writers := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("Create/writers=%d", writers), func(b *testing.B) {
			benchWrites(b, fresh(b).Open(b), writers, 0, func(s *sqlstore.Store, w, i int, _ int64) (sqlstore.Outcome, error) {
				return s.Write(b.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: pod(fmt.Sprint(i)), Value: value})
			})
		})
		b.Run(fmt.Sprintf("Update/writers=%d", writers), func(b *testing.B) {
			benchWrites(b, fresh(b).Open(b), writers, writers, func(s *sqlstore.Store, w, i int, last int64) (sqlstore.Outcome, error) {
				return s.Write(b.Context(), sqlstore.Op{Verb: sqlstore.Update, Key: pod(fmt.Sprint("u", w)), Expect: last, Value: value})
			})
		})
	}
	benchGroups(b, fresh, value)
	benchReads(b, fresh, value)
}

func benchWrites(b *testing.B, d sqlstore.Driver, writers, objects int, write func(s *sqlstore.Store, w, i int, last int64) (sqlstore.Outcome, error)) {
	s := sqlstore.New(d, sqlstore.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, 0, discard{}) }()
	for i := range objects {
		if _, err := s.Write(ctx, create(pod(fmt.Sprint("u", i)), "{}").Ops...); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := processor()
	for w := range writers {
		wg.Go(func() {
			last := int64(w + 1)
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				out, err := write(s, w, i, last)
				if err != nil {
					b.Error(err)
					return
				}
				last = out.Revisions[0]
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((processor()-before).Microseconds())/float64(b.N), "cpu-us/op")
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// benchReads reads 5,000 objects of 1 KB with 40,000 rows of history.
func benchReads(b *testing.B, fresh func(testing.TB) Database, value []byte) {
	const objects, versions = 5000, 8
	d := fresh(b).Open(b)
	last := make([]int64, objects)
	for range versions {
		batch := make([]sqlstore.Txn, objects)
		for i := range batch {
			op := sqlstore.Op{Verb: sqlstore.Update, Key: pod(fmt.Sprintf("%05d", i)), Expect: last[i], Value: value}
			if last[i] == 0 {
				op.Verb = sqlstore.Create
			}
			batch[i].Ops = []sqlstore.Op{op}
		}
		for i, out := range apply(b, d, batch...) {
			last[i] = out.Revisions[0]
		}
	}
	read := func(name string, rows int, fn func(i int) (int, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if n, err := fn(i); err != nil || n != rows {
					b.Fatalf("%d rows, %v", n, err)
				}
			}
		})
	}
	ctx := context.Background()
	read("Bounds", 0, func(int) (int, error) { _, err := d.Bounds(ctx); return 0, err })
	read("Read", 0, func(i int) (int, error) { _, err := d.Read(ctx, pod(fmt.Sprintf("%05d", i%objects)), 0); return 0, err })
	page := func(revision int64) func(int) (int, error) {
		return func(i int) (int, error) {
			after := key("pods", "default", fmt.Sprintf("%05d", i*500%(objects-500)))
			rows, err := d.Scan(ctx, sqlstore.ScanRequest{Resource: "pods", Namespace: "default", After: after, Limit: 500, Revision: revision})
			return len(rows), err
		}
	}
	read("Scan/live", 500, page(0))
	for _, back := range []int64{100, 5000, 30000} {
		read(fmt.Sprintf("Scan/back=%d", back), 500, page(objects*versions-back))
	}
	read("Changes", 500, func(i int) (int, error) {
		log, err := d.Changes(ctx, int64(objects+i%30000), 500, true)
		return len(log), err
	})
}
