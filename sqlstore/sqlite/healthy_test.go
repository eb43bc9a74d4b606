package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestGone: nothing is acknowledged that would go with the process, and what comes back
// is written to again.
func TestGone(t *testing.T) {
	for _, suffix := range []string{"", "-wal"} {
		for name, take := range map[string]func(path string) error{
			"deleted": os.Remove,
			"renamed": func(path string) error { return os.Rename(path, path+".away") },
			"replaced": func(path string) error {
				if err := os.Rename(path, path+".away"); err != nil {
					return err
				}
				return os.WriteFile(path, nil, 0o600)
			},
		} {
			t.Run(name+suffix, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "rowlock.db")
				d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				write := func(name string) error {
					op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: name}, Value: []byte("{}")}
					_, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now())
					return err
				}
				if err := errors.Join(write("a"), d.Healthy()); err != nil {
					t.Fatal(err)
				}
				if err := take(path + suffix); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := write("b"); !errors.Is(err, sqlstore.ErrGone) || errors.Is(err, sqlstore.ErrUncertain) {
						t.Errorf("a write: %v", err)
					}
				}
				if err := d.Healthy(); !errors.Is(err, sqlstore.ErrGone) {
					t.Errorf("asked: %v", err)
				}
				if b, err := d.Bounds(t.Context()); err != nil || b.Head != 1 {
					t.Errorf("a read: %+v, %v", b, err)
				}
				if name == "deleted" {
					return
				}
				if err := os.Rename(path+suffix+".away", path+suffix); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(write("b"), d.Healthy()); err != nil {
					t.Errorf("put back: %v", err)
				}
			})
		}
	}
}
