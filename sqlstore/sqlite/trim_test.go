package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestTrimInPieces: one call of Trim deletes as many rows as it is to, in transactions that are short whatever the size of the rows.
func TestTrimInPieces(t *testing.T) {
	for name, c := range map[string]struct{ size, least, most int }{
		"small": {1 << 10, 1, 1},
		"large": {700 << 10, 15, 30}, // three rows in each
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Unsynced: true}}
			d := f.Open(t).(*sqlite.Driver)
			const rows = 60
			mustApply(t, d, put("a", `"0"`))
			for i := int64(1); i <= rows; i++ {
				value := fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", c.size))
				mustApply(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: i, Value: []byte(value)}}})
			}
			commits := 0
			d.OnCommit(func() { commits++ })
			n, err := d.Trim(t.Context(), rows, 50)
			if n != 50 || err != nil || commits < c.least || commits > c.most {
				t.Fatalf("%d rows went in %d transactions, %v", n, commits, err)
			}
			if b, err := d.Bounds(t.Context()); b.Floor != rows || err != nil {
				t.Errorf("%+v, %v", b, err)
			}
			if n, err := d.Trim(t.Context(), rows, 50); n != rows-1-50 || err != nil {
				t.Errorf("%d rows were left, %v", n, err)
			}
			var gone *sqlstore.CompactedError
			if _, err := d.Changes(t.Context(), rows-1, 1, false); !errors.As(err, &gone) {
				t.Errorf("the log below the floor gave %v", err)
			}
			if row, err := d.Read(t.Context(), object, 0); err != nil || row.Revision != rows+1 || row.Damaged != nil {
				t.Errorf("%+v, %v", row.Revision, err)
			}
		})
	}
}

// TestForgetInPieces: one call of Forget deletes as many packs as it is to, in transactions that are short whatever the size of the
// packs, and afterwards the file gives pages back.
func TestForgetInPieces(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Unsynced: true}}
	d := f.Open(t).(*sqlite.Driver)
	const packs = 20
	random := rand.NewChaCha8([32]byte{})
	mustApply(t, d, put("a", `"0"`))
	for i := int64(1); i <= packs; i++ {
		noise := make([]byte, 350<<10)
		random.Read(noise)
		mustApply(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: i, Value: fmt.Appendf(nil, `"%x"`, noise)}}})
	}
	for _, floor := range []int64{0, packs + 1} {
		if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: packs + 1, Past: map[string]int64{"": floor}}); err != nil {
			t.Fatal(err)
		}
		if err := sqlstore.Pack(t.Context(), d, 1, func(sqlstore.Packed) {}); err != nil {
			t.Fatal(err)
		}
	}
	d.StopReclaiming()
	commits := 0
	d.OnCommit(func() { commits++ })
	n, err := d.Forget(t.Context(), packs-5)
	if n != packs-5 || err != nil || commits < 5 || commits > 8 { // three packs in each
		t.Fatalf("%d packs went in %d transactions, %v", n, commits, err)
	}
	if !d.Reclaims() {
		t.Error("no page is given back")
	}
	if n, err := d.Forget(t.Context(), packs); n != 5 || err != nil {
		t.Errorf("%d packs were left, %v", n, err)
	}
}
