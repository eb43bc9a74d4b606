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
