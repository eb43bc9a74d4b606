package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

type nullSink struct{}

func (nullSink) Apply([]sqlstore.Change) {}

func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			d, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "x.db"), sqlite.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			s := sqlstore.New(d, sqlstore.Config{})
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx, 0, nullSink{}) }()
			value := make([]byte, 1000)
			for i := range value {
				value[i] = 'a'
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := w; i < b.N; i += writers {
						_, err := s.Write(ctx, sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: fmt.Sprintf("cm-%d", i)}, Value: value})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}
