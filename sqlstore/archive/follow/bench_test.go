package follow

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// BenchmarkRestore restores 100,000 objects of a kilobyte, all of them from the log, into SQLite.
func BenchmarkRestore(b *testing.B) {
	o := newOrigin(b)
	dir := filepath.Join(b.TempDir(), "backup")
	r := o.follow(Config{Dir: dir})
	r.until("a base", func(s Stats) bool { return s.Bases > 0 })
	const objects, batch = 100_000, 500
	for i := 0; i < objects; i += batch {
		txns := make([]sqlstore.Txn, batch)
		for k := range txns {
			name := fmt.Sprintf("c%06d", i+k)
			txns[k].Ops = []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: name}, Value: fmt.Appendf(nil, `{"metadata":{"name":%q},"data":%q}`, name, strings.Repeat(name, 140))}}
		}
		if _, err := o.d.Apply(b.Context(), txns, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	o.has(r)
	r.end()
	l, err := List(dir)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := l.Plan(Target{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "restored.db"), sqlite.Config{})
		if err != nil {
			b.Fatal(err)
		}
		done, err := Restore(b.Context(), d, plan, Options{Scratch: b.TempDir()})
		if err != nil || done.Objects != objects {
			b.Fatal(done, err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
