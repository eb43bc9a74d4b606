package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// flipRuns returns how many damaged copies of a file TestFlippedBits reads: ROWLOCK_FLIPS, which e2e/long.sh sets.
func flipRuns(t *testing.T) int {
	text := os.Getenv("ROWLOCK_FLIPS")
	if text == "" {
		return 60
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// flipped makes a file with a few pages of each kind, and returns the live objects in it.
func flipped(t *testing.T) (content []byte, live map[sqlstore.Key]string) {
	path := filepath.Join(t.TempDir(), "whole.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	live = map[sqlstore.Key]string{}
	for i := range 600 {
		k := sqlstore.Key{Resource: "configmaps", Namespace: fmt.Sprint("n", i%7), Name: fmt.Sprintf("object-%04d", i*7919%600)}
		value := fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%q}}`, k.Name, strings.Repeat("v", i%97*3))
		ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: k, Value: []byte(value)}}
		out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, d.Now())
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
		row := fmt.Sprint(out[0].Revisions[0], out[0].Created[0], value)
		switch at := out[0].Revisions[0]; i % 5 {
		case 0:
			out, err = d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: k, Expect: at, Value: []byte(value + " ")}}}}, d.Now())
			if err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
			row = fmt.Sprint(out[0].Revisions[0], out[0].Created[0], value+" ")
		case 1:
			if out, err = d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Delete, Key: k, Expect: at, Value: []byte(value)}}}}, d.Now()); err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
			continue
		}
		live[k] = row
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return content, live
}

// TestFlippedBits: whatever bits of a file are flipped, reads are right or return an error.
func TestFlippedBits(t *testing.T) {
	content, live := flipped(t)
	dir := t.TempDir()
	kinds := map[string]int{}
	for seed := range flipRuns(t) {
		random := rand.New(rand.NewPCG(uint64(seed), 25))
		damaged := append([]byte(nil), content...)
		var at []int
		for range 1 + random.IntN(8) {
			bit := random.IntN(8 * len(damaged))
			at = append(at, bit)
			damaged[bit/8] ^= 1 << (bit % 8)
		}
		path := filepath.Join(dir, fmt.Sprint(seed, ".db"))
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		kind, wrong := readFlipped(t.Context(), path, sqlite.Config{Readers: 2}, live)
		if kinds[kind]++; wrong != "" {
			t.Errorf("seed %d, bits %d: %s, which was not reported", seed, at, wrong)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
			os.Remove(name)
		}
	}
	t.Log(kinds)
	if kinds["row"] == 0 || kinds["whole"] == 0 {
		t.Errorf("the test met %v: no row was damaged, or all were", kinds)
	}
}

// readFlipped returns how reads of a file were answered, and unreported errors.
func readFlipped(ctx context.Context, path string, cfg sqlite.Config, live map[sqlstore.Key]string) (kind, wrong string) {
	d, err := sqlite.Open(ctx, path, cfg)
	if err != nil {
		return "refused", ""
	}
	defer d.Close()
	b, err := d.Bounds(ctx)
	if err != nil {
		return "refused", ""
	}
	var mu sync.Mutex
	reported := false
	got := map[sqlstore.Key]string{}
	err = d.ReadAll(ctx, b.Head, func(rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range rows {
			r := &rows[i]
			if r.Damaged != nil {
				reported = true
			}
			if _, twice := got[r.Key]; twice {
				wrong = fmt.Sprintf("%s came twice", r.Key)
			}
			got[r.Key] = fmt.Sprint(r.Revision, r.Created, string(r.Value))
		}
		return nil
	})
	switch {
	case err != nil:
		return "error", ""
	case reported:
		return "row", ""
	case len(got) != len(live):
		wrong = fmt.Sprintf("%d objects, want %d", len(got), len(live))
	}
	for k, want := range live {
		if wrong == "" && got[k] != want {
			wrong = fmt.Sprintf("%s is %q, want %q", k, got[k], want)
		}
	}
	return "whole", wrong
}

// damages are the ways to damage a live row, whose revision is 2 and name b.
var damages = map[string]string{
	"value":   `UPDATE kv SET value = '{"n":3}' WHERE revision = 2`,
	"name":    `UPDATE kv SET name = 'c' WHERE revision = 2`,
	"blob":    `UPDATE kv SET name = CAST(name AS BLOB) WHERE revision = 2`,
	"created": `UPDATE kv SET created_revision = 1 WHERE revision = 2`,
	"expires": `UPDATE kv SET expires_at = 0 WHERE revision = 2`,
	"written": `UPDATE kv SET written_at = written_at + 1 WHERE revision = 2`,
	"sum":     `UPDATE kv SET checksum = checksum + 1 WHERE revision = 2`,
	"time":    `UPDATE kv SET written_at = 'noon' WHERE revision = 2`,
}

// TestDamagedRow: a row that is not as it was written is found wherever it is read, and nothing else is.
func TestDamagedRow(t *testing.T) {
	for name, statement := range damages {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db")}
			d := f.Open(t).(*sqlite.Driver)
			for _, k := range []string{"a", "b"} {
				write(t, d, sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "n", Name: k}, Value: []byte(`{"n":1}`)})
			}
			if found := damagedBy(t, d); len(found) > 0 {
				t.Fatalf("before it was damaged: %v", found)
			}
			f.Exec(t, statement)
			found := damagedBy(t, d)
			for _, way := range []string{"ReadAll", "ReadRows", "Scan", "Changes", "Verify"} {
				if fmt.Sprint(found[way]) != "[2]" {
					t.Errorf("%s found %v", way, found[way])
				}
			}
			// A row of an older version, and one that was changed by hand on purpose, is not checked.
			if name != "name" && name != "blob" && name != "time" {
				f.Exec(t, `UPDATE kv SET checksum = NULL`)
				for way, revisions := range damagedBy(t, d) {
					if way != "Verify" && len(revisions) > 0 {
						t.Errorf("without a checksum %s found %v", way, revisions)
					}
				}
			}
		})
	}
}

// behindIndexes runs a statement that some indexes do not follow, as damage to their pages or to those of the table has it.
func behindIndexes(t *testing.T, f file, indexes []string, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec("CREATE TEMP TABLE hidden AS SELECT * FROM sqlite_master WHERE false")
	exec("PRAGMA writable_schema = ON")
	for _, index := range indexes {
		exec("INSERT INTO hidden SELECT * FROM sqlite_master WHERE name = ?", index)
		exec("DELETE FROM sqlite_master WHERE name = ?", index)
	}
	exec("PRAGMA writable_schema = RESET")
	exec(statement)
	exec("PRAGMA writable_schema = ON")
	exec("INSERT INTO sqlite_master SELECT * FROM hidden")
	exec("PRAGMA writable_schema = RESET")
}

// TestIndexMismatch: differences between the table and its indexes are found; those by which
// an object may be lost, or a deleted one be back, already by a start.
func TestIndexMismatch(t *testing.T) {
	key := func(name string) sqlstore.Key { return sqlstore.Key{Resource: "pods", Namespace: "n", Name: name} }
	live, all := []string{"kv_live"}, []string{"kv_live", "kv_ended", "kv_past"}
	for name, tc := range map[string]struct {
		indexes   []string // which do not follow
		statement string
		atStart   bool
		want      string // the result of CheckRows
	}{
		"the table has lost a row": {live, "DELETE FROM kv WHERE revision = 2", true,
			"pods/n/b at 2, ended 0: an index has the row, but the table does not"},
		"an index has lost a row": {live, "INSERT INTO kv (revision, resource, namespace, name, created_revision, value, written_at) VALUES (6, 'pods', 'n', 'd', 6, '{}', 1)", true,
			"pods/n/d at 6, ended 0: no index has the row, so it may have ended"},
		"a row that ended is back": {all, "UPDATE kv SET superseded_revision = NULL WHERE revision = 4", true,
			"pods/n/c at 4, ended 0: no index has the row, so it may have ended"},
		"a row has ended": {live, "UPDATE kv SET superseded_revision = 5 WHERE revision = 2", true,
			"pods/n/b at 2, ended 0: the index kv_live has the row as a live one, but the table has it as one that ended"},
		"a key is another in the index": {live, "UPDATE kv SET name = 'bb', checksum = NULL WHERE revision = 2", false,
			"pods/n/b at 2, ended 0: the index kv_live has another key for the row; pods/n/bb at 2, ended 0: no index has the row, so it may have ended"},
		"the index of the past has lost a row": {[]string{"kv_ended"}, "UPDATE kv SET superseded_revision = 5 WHERE revision = 4", false,
			"pods/n/c at 4, ended 5: the index kv_ended lacks the row"},
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db")}
			d := f.Open(t).(*sqlite.Driver)
			for _, k := range []string{"a", "b", "c"} {
				write(t, d, sqlstore.Op{Verb: sqlstore.Create, Key: key(k), Value: []byte(`{}`)})
			}
			write(t, d, sqlstore.Op{Verb: sqlstore.Delete, Key: key("c"), Expect: 3, Value: []byte(`{}`)})
			write(t, d, sqlstore.Op{Verb: sqlstore.Update, Key: key("a"), Expect: 1, Value: []byte(`{}`)})
			write(t, d, sqlstore.Op{Verb: sqlstore.Create, Key: key("e"), Value: []byte(`{}`)})
			f.Exec(t, "DELETE FROM kv WHERE revision = 6") // a place for another
			check := func() string {
				t.Helper()
				var found []string
				err := d.CheckRows(t.Context(), true, func(differ []sqlstore.Row) error {
					for _, r := range differ {
						found = append(found, fmt.Sprintf("%s at %d, ended %d: %s", r.Key, r.Revision, r.Superseded, strings.TrimPrefix(r.Damaged.Error(), "damaged in the database: ")))
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(found, "; ")
			}
			none := func([]sqlstore.Row) error { return nil }
			if found, err := check(), d.ReadAll(t.Context(), 6, none); found != "" || err != nil {
				t.Fatalf("before it was damaged: %s, %v", found, err)
			}
			behindIndexes(t, f, tc.indexes, tc.statement)
			d = f.Open(t).(*sqlite.Driver)
			if found := check(); found != tc.want {
				t.Errorf("found %s\n want %s", found, tc.want)
			}
			if err := d.ReadAll(t.Context(), 6, none); errors.Is(err, sqlstore.ErrIndexMismatch) != tc.atStart || err != nil && !tc.atStart {
				t.Errorf("ReadAll ended with %v", err)
			}
			report, err := upkeep.Verify(t.Context(), d, nil)
			if err != nil || report.Count == 0 {
				t.Errorf("Verify: %+v, %v", report, err)
			}
		})
	}
}

func write(t *testing.T, d *sqlite.Driver, op sqlstore.Op) {
	t.Helper()
	out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, d.Now())
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damagedBy lists the revisions of damaged rows, by the way in which they were read.
func damagedBy(t *testing.T, d *sqlite.Driver) map[string][]int64 {
	t.Helper()
	found := map[string][]int64{}
	var mu sync.Mutex
	look := func(way string, rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range rows {
			var damage *sqlstore.DamageError
			if errors.As(rows[i].Damaged, &damage) {
				found[way] = append(found[way], rows[i].Revision)
			}
		}
		return nil
	}
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	errs := []error{
		d.ReadAll(t.Context(), b.Head, func(rows []sqlstore.Row) error { return look("ReadAll", rows) }),
		d.ReadRows(t.Context(), []int64{1, 2}, func(rows []sqlstore.Row) error { return look("ReadRows", rows) }),
	}
	rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 10})
	errs = append(errs, err, look("Scan", rows))
	changes, err := d.Changes(t.Context(), 0, int(b.Head), true)
	errs = append(errs, err)
	for _, c := range changes {
		errs = append(errs, look("Changes", []sqlstore.Row{c.Row}), look("Previous", []sqlstore.Row{{Revision: c.PrevRevision, Damaged: c.PrevDamaged}}))
	}
	report, err := upkeep.Verify(t.Context(), d, nil)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		if strings.Contains(p.Reason, "damaged in the database") && len(found["Verify"]) == 0 {
			found["Verify"] = append(found["Verify"], p.Revision)
		}
	}
	return found
}

// TestDamagedPast: states of the past are checked as well, and packing does not vouch for them.
func TestDamagedPast(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t).(*sqlite.Driver)
	k := sqlstore.Key{Resource: "pods", Namespace: "n", Name: "a"}
	write(t, d, sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: []byte(`{"n":1}`)})
	write(t, d, sqlstore.Op{Verb: sqlstore.Update, Key: k, Expect: 1, Value: []byte(`{"n":2}`)})
	f.Exec(t, `UPDATE kv SET value = '{"n":3}' WHERE revision = 1`)
	if found := damagedBy(t, d); fmt.Sprint(found["Previous"]) != "[1]" || len(found["ReadAll"]) > 0 {
		t.Errorf("found %v", found)
	}
	if row, err := d.Read(t.Context(), k, 1); err != nil || row.Damaged == nil {
		t.Errorf("an exact read: %+v, %v", row, err)
	}
	if rows, err := d.Past(t.Context(), k, 0, 10); err != nil || len(rows) != 2 || rows[0].Damaged != nil || rows[1].Damaged == nil {
		t.Errorf("the object's past: %+v, %v", rows, err)
	}
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 2, Past: map[string]int64{"": 0}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Pack(t.Context(), sqlstore.Cursor{}, 100); err != nil {
		t.Fatal(err)
	}
	if row, err := d.Read(t.Context(), k, 1); err != nil || row.Damaged == nil {
		t.Errorf("an exact read after packing: %+v, %v", row, err)
	}
}
