package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestMain(m *testing.M) {
	storetest.CrashChild(func(ctx context.Context, path string) (sqlstore.Driver, error) {
		path, relaxed := strings.CutPrefix(path, "relaxed:")
		cfg := sqlite.Config{}
		if relaxed {
			cfg.Relaxed = []string{"pods"}
		}
		return sqlite.Open(ctx, path, cfg)
	})
	goleak.VerifyTestMain(m)
}

// file is a database in the test's own folder.
type file struct {
	path string
	cfg  sqlite.Config
}

func fresh(t testing.TB) storetest.Database {
	return file{path: filepath.Join(t.TempDir(), "test.db")}
}

func (f file) Open(t testing.TB) sqlstore.Driver {
	t.Helper()
	d, err := sqlite.Open(t.Context(), f.path, f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func (f file) Exec(t testing.TB, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Damage implements storetest.Damager.
func (f file) Damage(t testing.TB, k sqlstore.Key) {
	t.Helper()
	f.Exec(t, fmt.Sprintf(`UPDATE kv SET value = CAST(value AS TEXT) || ' ' WHERE superseded_revision IS NULL AND resource = '%s' AND namespace = '%s' AND name = '%s'`, k.Resource, k.Namespace, k.Name))
}

func TestConformance(t *testing.T) { storetest.Run(t, fresh) }

// deep is a database whose snapshots are all read as those far back are.
type deep struct{ file }

func (f deep) Open(t testing.TB) sqlstore.Driver {
	d := f.file.Open(t).(*sqlite.Driver)
	d.SetFar(-1)
	return d
}

// TestConformanceOfDeepSnapshots runs the groups that read snapshots.
func TestConformanceOfDeepSnapshots(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Database {
		return deep{file{path: filepath.Join(t.TempDir(), "test.db")}}
	}, "Read", "Past", "Trim", "Several", "Faults", "Sealed", "Damage", "Model")
}

func TestCrash(t *testing.T) {
	db := file{path: filepath.Join(t.TempDir(), "test.db")}
	storetest.Crash(t, db, db.path)
	db.Open(t)
	db.becomes(t, 0, leftOver)
}

// TestCrashRelaxed: writes that were acknowledged before they were on the disk survive killing the process.
func TestCrashRelaxed(t *testing.T) {
	db := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Relaxed: []string{"pods"}}}
	storetest.Crash(t, db, "relaxed:"+db.path)
}

func TestCrashPacking(t *testing.T) {
	db := file{path: filepath.Join(t.TempDir(), "test.db")}
	storetest.CrashPacking(t, db, db.path)
}

func Benchmark(b *testing.B) { storetest.Bench(b, fresh) }

func TestOperations(t *testing.T) { storetest.Operations(t, fresh) }

func TestBackups(t *testing.T) { storetest.Backups(t, fresh, fresh) }
