package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestSizeIsSteady sees that file and log stop growing under a steady load.
func TestSizeIsSteady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{PollInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	hints := d.Hints(ctx)
	storetest.BoundedGrowth(t, d, func() {
		if log, err := os.Stat(path + "-wal"); err != nil || log.Size() > 66<<20 {
			t.Fatalf("the log has %v, %v", log, err)
		}
	})
	cancel()
	for range hints {
	}
}
