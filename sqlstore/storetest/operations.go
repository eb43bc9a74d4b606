package storetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// Backups tests backups from one database into another: fresh ones of from and to, which may be of different drivers.
func Backups(t *testing.T, from, to func(testing.TB) Database) {
	for name, test := range map[string]func(*testing.T, Database, Database){
		"backup and restore":             backupAndRestore,
		"backup of packs":                backupOfPacks,
		"backup while writing":           backupWhileWriting,
		"backup begins again":            backupBeginsAgain,
		"damaged backups leave it empty": damagedBackups,
		"restore wants an empty store":   restoreNotEmpty,
	} {
		t.Run(name, func(t *testing.T) { test(t, from(t), to(t)) })
	}
}

// Operations tests the upkeep of a database by operators.
func Operations(t *testing.T, fresh func(testing.TB) Database) {
	for name, test := range map[string]func(*testing.T, Database){
		"verify":             verify,
		"verify of packs":    verifyPacks,
		"compact and status": compactAndStatus,
		"export":             export,
		"repair":             repair,
		"large revisions":    LargeRevisions,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func backup(t testing.TB, d sqlstore.Driver, opt archive.Options) ([]byte, archive.Header) {
	t.Helper()
	var file bytes.Buffer
	h, _, err := archive.Backup(t.Context(), d, &file, opt)
	if err != nil {
		t.Fatal(err)
	}
	if ch, _, err := archive.Check(bytes.NewReader(file.Bytes())); err != nil || ch != h {
		t.Fatalf("a fresh backup is %+v, %v; want %+v", ch, err, h)
	}
	return file.Bytes(), h
}

func clean(t testing.TB, d sqlstore.Driver) *upkeep.Report {
	t.Helper()
	report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil })
	if err != nil || report.Count != 0 {
		t.Fatalf("Verify found %+v, %v", report, err)
	}
	return report
}

func backupAndRestore(t *testing.T, from, to Database) {
	src, dst := from.Open(t), to.Open(t)
	history(t, 200, src)
	apply(t, src, create(pod("binary"), "\x00\xff"), create(pod("empty"), ""), create(pod("spaced"), " {\"a\": 1.50, \"b\":\"<>&\"}\n"), create(pod("exact"), `{"a": 1.50, "b":"<>&"}`),
		sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: pod("expiring"), Value: []byte("{}"), ExpiresAt: start.Add(time.Hour)}}})
	if _, err := src.Trim(t.Context(), 50, 1000); err != nil {
		t.Fatal(err)
	}
	file, h := backup(t, src, archive.Options{History: true})
	if h.Floor != 50 || h.Revision != 205 {
		t.Fatalf("the backup is of %+v", h)
	}
	if _, _, err := archive.Restore(t.Context(), dst, bytes.NewReader(file), nil); err != nil {
		t.Fatal(err)
	}
	wantBounds(t, dst, 50, 205)
	for _, revision := range []int64{0, 50, 51, 120, 204, 205} {
		req := sqlstore.ScanRequest{Limit: 50, Revision: revision}
		wantRows(t, scanAll(t, dst, req), scanAll(t, src, req))
	}
	got, want := changes(t, dst, 50), changes(t, src, 50)
	for i := range want {
		wantChange(t, got[i], want[i], true)
	}
	clean(t, dst)
	a, _ := src.Stats(t.Context())
	b, _ := dst.Stats(t.Context())
	if a.ClusterID != b.ClusterID || a.LiveRows != b.LiveRows || a.HistoryRows != b.HistoryRows {
		t.Fatalf("statistics are %+v, want %+v", b, a)
	}
	if r := must(t, dst, create(pod("next"), "x")); r != 206 {
		t.Fatalf("the restored store goes on at %d", r)
	}
}

func backupWhileWriting(t *testing.T, from, to Database) {
	src, dst := from.Open(t), to.Open(t)
	s := serve(t, src, sqlstore.Config{Retention: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			k := pod(fmt.Sprint(i % 300))
			row, err := src.Read(t.Context(), k, 0)
			op := sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: fmt.Appendf(nil, `{"i":%d}`, i)}
			if err == nil {
				op.Verb, op.Expect = sqlstore.Update, row.Revision
			}
			if _, err := s.Write(t.Context(), op); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	waitFor(t, "some writes", func() bool { return s.Applied() > 500 })
	path := filepath.Join(t.TempDir(), "backup")
	h, _, err := archive.BackupFile(t.Context(), src, path, archive.Options{History: true})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	restoreFile(t, dst, path)
	wantBounds(t, dst, h.Floor, h.Revision)
	report, err := upkeep.Verify(t.Context(), dst, nil)
	if err != nil || report.Count != 0 {
		t.Fatalf("Verify found %+v, %v", report, err)
	}
	got, want := scanAll(t, dst, sqlstore.ScanRequest{Limit: 100}), scanAll(t, src, sqlstore.ScanRequest{Limit: 100, Revision: h.Revision})
	for i := range want {
		want[i].Superseded = 0
	}
	wantRows(t, got, want)
}

// hasty compacts the whole history at the next reads of changes; times counts them.
type hasty struct {
	sqlstore.Driver
	times int
}

func (h *hasty) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	if h.times--; h.times >= 0 {
		b, err := h.Driver.Bounds(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := h.Driver.Trim(ctx, b.Head, 1000); err != nil {
			return nil, err
		}
		if _, err := h.Driver.Apply(ctx, []sqlstore.Txn{create(pod(fmt.Sprint("more", b.Head)), "x")}, start); err != nil {
			return nil, err
		}
	}
	return h.Driver.Changes(ctx, after, limit, previous)
}

func backupBeginsAgain(t *testing.T, from, to Database) {
	src, dst := from.Open(t), to.Open(t)
	history(t, 100, src)
	path := filepath.Join(t.TempDir(), "backup")
	h, _, err := archive.BackupFile(t.Context(), &hasty{src, 2}, path, archive.Options{History: true})
	if err != nil {
		t.Fatal(err)
	}
	if h.Floor != 101 || h.Revision != 102 {
		t.Errorf("the backup is of %d to %d, want 101 to 102, as the third try found them", h.Floor, h.Revision)
	}
	restoreFile(t, dst, path)
	wantBounds(t, dst, h.Floor, h.Revision)
	var compacted *sqlstore.CompactedError
	if _, _, err := archive.BackupFile(t.Context(), &hasty{src, 3}, path+"2", archive.Options{History: true}); !errors.As(err, &compacted) {
		t.Errorf("always compacted: %v, want a CompactedError", err)
	}
}

func damagedBackups(t *testing.T, from, to Database) {
	src, dst := from.Open(t), to.Open(t)
	history(t, 100, src)
	file, _ := backup(t, src, archive.Options{})
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(s string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.Bytes()
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, bad := range map[string][]byte{
		"nothing":        nil,
		"no gzip":        []byte("hello"),
		"no backup":      pack("{}\n"),
		"cut":            file[:len(file)/2],
		"cut at its end": file[:len(file)-4],
		"a line is gone": pack(strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), "")),
		"no trailer":     pack(strings.Join(lines[:len(lines)-2], "")),
		"another value":  pack(strings.Replace(string(text), `"name":"a"`, `"name":"z"`, 1)),
		"another bound":  pack(strings.Replace(string(text), `"revision":100`, `"revision":101`, 1)),
		"more behind":    pack(string(text) + "x"),
	} {
		if bytes.Equal(bad, pack(string(text))) {
			t.Fatalf("%s: nothing is damaged", name)
		}
		_, _, err := archive.Restore(t.Context(), dst, bytes.NewReader(bad), nil)
		if !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("%s: error is %v", name, err)
		}
		wantBounds(t, dst, 0, 0)
		wantRows(t, scanAll(t, dst, sqlstore.ScanRequest{Limit: 1000}), nil)
	}
	if _, _, err := archive.Restore(t.Context(), dst, bytes.NewReader(file), nil); err != nil {
		t.Fatalf("after failures a restore gave %v", err)
	}
	wantBounds(t, dst, 100, 100)
	clean(t, dst)
}

// restoreFile fills an empty database from a backup file.
func restoreFile(t testing.TB, d sqlstore.Driver, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := archive.Restore(t.Context(), d, f, nil); err != nil {
		t.Fatal(err)
	}
}

func restoreNotEmpty(t *testing.T, from, to Database) {
	src, dst := from.Open(t), to.Open(t)
	file, _ := backup(t, src, archive.Options{}) // of an empty store
	must(t, dst, create(pod("a"), "a"))
	_, _, err := archive.Restore(t.Context(), dst, bytes.NewReader(file), nil)
	wantErr(t, err, sqlstore.ErrNotEmpty)
	must(t, dst, update(pod("a"), 1, "b"))
}

func verify(t *testing.T, db Database) {
	d := db.Open(t)
	history(t, 100, d)
	if r := clean(t, d); r.Changes != 100 || r.Objects == 0 || r.From != 0 || r.To != 100 {
		t.Fatalf("the report is %+v", r)
	}
	report, err := upkeep.Verify(t.Context(), d, nil) // the values are no JSON
	if err != nil || report.Count != 100 || len(report.Problems) != 100 || report.Problems[0].Revision != 1 {
		t.Fatalf("the report is %+v, %v", report, err)
	}
	for _, damage := range []string{
		`UPDATE kv SET created_revision = created_revision + 1 WHERE revision = 100`,
		`UPDATE kv SET superseded_revision = 100 WHERE revision = (SELECT max(revision) FROM kv WHERE superseded_revision IS NULL AND revision < 99)`,
		`DELETE FROM kv WHERE revision = 60`,
	} {
		db.Exec(t, damage)
		report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil })
		if err != nil || report.Count == 0 {
			t.Fatalf("after %q the report is %+v, %v", damage, report, err)
		}
	}
}

func compactAndStatus(t *testing.T, db Database) {
	d := db.Open(t)
	updates(t, d, pod("a"), must(t, d, create(pod("a"), "0")), 1500)
	s, err := upkeep.Look(t.Context(), d)
	if err != nil || s.HistoryRows != 1500 || !s.OldestSnapshot.Equal(start) || s.Served {
		t.Fatalf("the status is %+v, %v", s, err)
	}
	var reported int64
	floor, rows, err := upkeep.Compact(t.Context(), d, 1400, func(n int64) { reported = n })
	if err != nil || floor != 1400 || rows != 1399 || reported != rows {
		t.Fatalf("Compact gave %d, %d (reported %d), %v", floor, rows, reported, err)
	}
	wantBounds(t, d, 1400, 1501)
	clean(t, d)
	_, _, err = upkeep.Compact(t.Context(), d, 1502, nil)
	wantErr(t, err, &sqlstore.FutureError{Revision: 1502, Head: 1501})
	serve(t, d, sqlstore.Config{Retention: time.Hour})
	waitFor(t, "the server to lead", func() bool {
		s, err := upkeep.Look(t.Context(), d)
		return err == nil && s.Served
	})
}

func export(t *testing.T, db Database) {
	d := db.Open(t)
	must(t, d, create(pod("a"), `{"metadata":{"name":"a'b"},"n":1}`))
	must(t, d, create(pod("b"), `{"cut`))
	must(t, d, update(pod("a"), 1, `{"metadata":{"name":"a"},"n":2}`))
	for _, c := range []struct {
		format   archive.Format
		revision int64
		want     []string
	}{
		{archive.SQL, 2, []string{"VALUES ('pods', 'default', 'a', 1, '{\"metadata\":{\"name\":\"a''b\"},\"n\":1}')", "'b', 2, NULL)", "COMMIT;"}},
		{archive.YAML, 0, []string{"\"n\": 2\n", "# pods/default/a at revision 3\n", "# pods/default/b at revision 2 is damaged"}},
	} {
		var out strings.Builder
		done, err := archive.Export(t.Context(), d, &out, archive.ExportOptions{Format: c.format, Revision: c.revision})
		if at := done.Revision; err != nil || done.Objects != 2 || done.Damaged != 1 || at != max(c.revision, 2) && at != 3 {
			t.Fatalf("Export gave %+v, %v", done, err)
		}
		for _, part := range c.want {
			if !strings.Contains(out.String(), part) {
				t.Fatalf("the export lacks %q:\n%s", part, out.String())
			}
		}
	}
	_, err := archive.Export(t.Context(), d, io.Discard, archive.ExportOptions{Format: archive.SQL, Revision: 9})
	wantErr(t, err, &sqlstore.FutureError{Revision: 9, Head: 3})
}

// backupOfPacks takes history that lies in packs into another database, where it is packed again.
func backupOfPacks(t *testing.T, from, to Database) {
	src, dst, m := from.Open(t), to.Open(t), newModel()
	lives(t, 1, src, m)
	retain(t, sqlstore.Floors{Log: 150, Past: map[string]int64{"": 20, "pods": 90}}, src, m)
	packAll(t, src, 40)
	packAll(t, m, 1)
	file, _ := backup(t, src, archive.Options{History: true})
	if _, _, err := archive.Restore(t.Context(), dst, bytes.NewReader(file), nil); err != nil {
		t.Fatal(err)
	}
	samePast(t, dst, m)
	packAll(t, dst, 40)
	samePast(t, dst, m)
	at := start.Add(60*time.Second + time.Millisecond)
	a, err1 := src.RevisionAt(t.Context(), at)
	b, err2 := dst.RevisionAt(t.Context(), at)
	if err1 != nil || err2 != nil || a != 60 || b < 55 || b > a { // a revision that was removed has no mark
		t.Fatalf("the revision at a time is %d, %v; after the restore %d, %v; want 60 and hardly less", a, err1, b, err2)
	}
}

// verifyPacks damages the contents of packs.
func verifyPacks(t *testing.T, db Database) {
	d := db.Open(t)
	lives(t, 1, d)
	retain(t, sqlstore.Floors{Log: 150, Past: map[string]int64{"": 0}}, d)
	packAll(t, d, 40)
	if r := clean(t, d); r.Older < 100 || r.From != 150 {
		t.Fatalf("the report is %+v", r)
	}
	for _, damage := range []string{
		`UPDATE kv_packed SET count = count + 1 WHERE until_revision = (SELECT max(until_revision) FROM kv_packed)`,
		`UPDATE kv_packed SET created_revision = created_revision + 1 WHERE until_revision = (SELECT min(until_revision) FROM kv_packed WHERE first_revision > 50)`,
		`UPDATE kv_packed SET value = '{"base":"{}","rows":[[0,0,[]]],"sum":1}' WHERE until_revision = (SELECT max(until_revision) FROM kv_packed)`,
	} {
		before, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		db.Exec(t, damage)
		after, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil })
		if err != nil || after.Count == 0 || strings.Contains(damage, "created") && after.Count <= before.Count {
			t.Fatalf("after %q the report is %+v, %v", damage, after, err)
		}
	}
}
