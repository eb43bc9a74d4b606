package postgres_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// filled returns a database with many rows of different lengths.
func filled(t testing.TB, n int64, length func(i int64) int) database {
	t.Helper()
	db := newDatabase(t, postgres.Config{})
	rows := func(yield func(sqlstore.Row, error) bool) {
		for i := int64(1); i <= n; i++ {
			key := sqlstore.Key{Resource: "pods", Namespace: fmt.Sprintf("n%d", i/100), Name: fmt.Sprintf("p%d", i)}
			value := bytes.Repeat([]byte{byte('a' + i%26)}, length(i))
			if !yield(sqlstore.Row{Key: key, Revision: i, Created: i, Value: value, WrittenAt: time.Unix(1, 0)}, nil) {
				return
			}
		}
	}
	d := db.Open(t).(*postgres.Driver)
	if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: n, Head: n}, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return db
}

// BenchmarkReadAll reads rows of 4 KB: all of them, by their revisions, and fifty by fifty.
func BenchmarkReadAll(b *testing.B) {
	const n = 20_000
	db := filled(b, n, func(int64) int { return 4000 })
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	none := func([]sqlstore.Row) error { return nil }
	for _, cfg := range []postgres.Config{{}, {Poll: true}} {
		db.cfg = cfg
		d := db.Open(b).(*postgres.Driver)
		for name, read := range map[string]func() error{
			"all":         func() error { return d.ReadAll(b.Context(), n, none) },
			"byRevisions": func() error { return d.ReadRows(b.Context(), revisions, none) },
			"fifties": func() error {
				for some := range slices.Chunk(revisions, 50) {
					if err := d.ReadRows(b.Context(), some, none); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			b.Run(fmt.Sprintf("%s/poll=%v", name, cfg.Poll), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := read(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
