package memory_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is one of which each Open is another server. Only drivers can change it.
type database struct{ *memory.Database }

func (b database) Open(t testing.TB) sqlstore.Driver {
	d := b.Database.Open()
	t.Cleanup(func() { d.Close() })
	return d
}

func (b database) Exec(t testing.TB, query string) {
	t.Helper()
	t.Fatalf("a database in memory knows no %q", query)
}

func fresh(testing.TB) storetest.Database { return database{memory.New(memory.Config{})} }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, fresh)
}

func TestLargeRevisions(t *testing.T) { storetest.LargeRevisions(t, fresh(t)) }

// TestImmutable: the driver keeps a value that never changes, and does not copy it while other writers wait.
func TestImmutable(t *testing.T) {
	d := fresh(t).Open(t)
	value := make([]byte, 8<<20)
	op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: "a"}, Value: value, Immutable: true}
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, start); err != nil {
		t.Fatal(err)
	}
	value[0] = 1 // shows which memory the driver has
	row, err := d.Read(t.Context(), op.Key, 0)
	if err != nil || len(row.Value) != len(value) || row.Value[0] != 1 {
		t.Errorf("%d bytes, %v", len(row.Value), err)
	}
	row.Value[0] = 2 // which belongs to the caller
	if value[0] != 1 {
		t.Error("a reader got the driver's memory")
	}
}

func Benchmark(b *testing.B) { storetest.Bench(b, fresh) }

// file is an SQLite database, to be compared with.
type file struct{ path string }

func (f file) Open(t testing.TB) sqlstore.Driver {
	t.Helper()
	d, err := sqlite.Open(t.Context(), f.path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func newFile(t testing.TB) file { return file{filepath.Join(t.TempDir(), "test.db")} }
