package sqlite_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// unstaged counts the large values of commits that were not staged.
type unstaged struct {
	sqlstore.Driver
	n int
}

func (d *unstaged) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	for _, txn := range batch {
		for _, op := range txn.Ops {
			if len(op.Value) >= sqlstore.LargeValue && op.Staged == 0 {
				d.n++
			}
		}
	}
	return d.Driver.Apply(ctx, batch, now)
}

// TestCommandsStageLargeValues: commands write large values ahead of the rows, as servers do: servers may write at the same time.
func TestCommandsStageLargeValues(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := &unstaged{Driver: f.Open(t)}
	value := storetest.LargeJSON(1, 2<<20)
	mustApply(t, d, put("b", "{}"), put("c", "{}"))
	first := writeValue(t, d, true, sqlstore.Create, 0, value)
	writeValue(t, d, false, sqlstore.Update, first, []byte("{}"))
	read := func(revision int64) sqlstore.Row {
		t.Helper()
		row, err := d.Read(t.Context(), object, revision)
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	if _, err := upkeep.Rollback(t.Context(), d, read(0), read(first)); err != nil {
		t.Fatal(err)
	}
	wantValue(t, d, value)
	rewrite := upkeep.Rewrite{Keys: storetest.NewTestSealer("k"), Form: func(row *sqlstore.Row) ([]byte, error) {
		return append(slices.Clone(bytes.TrimSpace(row.Value)), ' '), nil
	}}
	if done, err := rewrite.Run(t.Context(), d); err != nil || done.Written != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	wantValue(t, d, append(slices.Clone(value), ' '))
	if _, err := upkeep.Delete(t.Context(), d, read(0)); err != nil {
		t.Fatal(err)
	}
	if d.n != 0 {
		t.Errorf("%d large values were written in one transaction", d.n)
	}
	f.becomes(t, 0, leftOver)
	storetest.CheckTable(t, d)
}
