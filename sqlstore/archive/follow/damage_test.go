package follow

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// segmentsOf returns the files of the log, oldest first.
func segmentsOf(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	return files
}

func load(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func store(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newestOf restores the newest state into memory, and returns how far it went.
func newestOf(t testing.TB, dir string) (Restored, error) {
	t.Helper()
	l, err := List(dir)
	if err != nil {
		return Restored{}, err
	}
	if len(l.Problems) > 0 {
		return Restored{}, fmt.Errorf("%w: %s", ErrDamaged, strings.Join(l.Problems, "; "))
	}
	p, err := l.Plan(Target{})
	if err != nil {
		return Restored{}, err
	}
	d := memory.New(memory.Config{}).Open()
	defer d.Close()
	return Restore(t.Context(), d, p, Options{Scratch: t.TempDir()})
}

// TestCutAnywhere: cut at any byte, as a kill leaves it, the log restores up to its last
// whole frame, and the next follower writes the rest again.
func TestCutAnywhere(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 3)
	o.write(3)
	r := o.follow(Config{Dir: dir})
	r.until("the head", func(s Stats) bool { return s.Revision == o.head() })
	r.end()
	path := segmentsOf(t, dir)[0]
	whole := load(t, path)
	last := int64(0)
	for n := range whole {
		store(t, path, whole[:n])
		got, err := newestOf(t, dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if got.Revision < last || got.Revision > o.head() {
			t.Fatalf("cut at %d: revision %d after %d", n, got.Revision, last)
		}
		last = got.Revision
		if n%7 != 0 {
			continue
		}
		again := o.follow(Config{Dir: dir})
		again.until("the head", func(s Stats) bool { return s.Revision == o.head() })
		again.end()
		o.same(dir, Target{}, o.head())
		for _, f := range segmentsOf(t, dir) {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last < o.head()-3 {
		t.Fatalf("only revision %d was reached", last)
	}
}

// TestFlipAnywhere: a byte that changed anywhere in the log, or in the base, is noticed by
// who restores, with the name of the file.
func TestFlipAnywhere(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 5)
	files := segmentsOf(t, dir)
	for _, path := range files {
		whole := load(t, path)
		for n := range whole {
			bad := append([]byte(nil), whole...)
			bad[n] ^= 1 << (n % 8)
			store(t, path, bad)
			if got, err := newestOf(t, dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(path)) {
				// The state before the damaged part can be restored only by name.
				t.Fatalf("byte %d of %s: %+v %v", n, filepath.Base(path), got, err)
			}
		}
		store(t, path, whole)
	}
	bases, err := filepath.Glob(filepath.Join(dir, basePrefix+"*"))
	if err != nil || len(bases) != 1 {
		t.Fatalf("%v %v", bases, err)
	}
	whole := load(t, bases[0])
	for n := 10; n < len(whole); n += 3 { // before that are unused fields of gzip
		bad := append([]byte(nil), whole...)
		bad[n] ^= 1 << (n % 8)
		store(t, bases[0], bad)
		if bytes.Equal(unzipped(bad), unzipped(whole)) {
			continue // an unused bit, as after the last block
		}
		if got, err := newestOf(t, dir); err == nil || !strings.Contains(err.Error(), filepath.Base(bases[0])) {
			t.Fatalf("byte %d of the base: %+v %v", n, got, err)
		}
	}
}

// unzipped returns the content of a gzip file; nil if it is damaged.
func unzipped(file []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return text
}

// TestFailedSync: the sync of the last write to a segment may have failed, so the next writer makes it again before it goes on.
func TestFailedSync(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 10)
	path := segmentsOf(t, dir)[0]
	for _, ended := range []bool{false, true} {
		before, past := load(t, path), time.Unix(1_000_000_000, 0)
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
		w, err := newWriter(dir, 1<<20, time.Hour, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		defer w.zip.Close()
		r, err := w.resume(path)
		if err != nil || r.ended != ended {
			t.Fatalf("it has ended: %t, %v", r.ended, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.ModTime().Equal(past) || r.end <= 0 || r.end >= r.size || r.size != int64(len(before)) {
			t.Errorf("bytes %d to %d were written again at %v, %v", r.end, r.size, info.ModTime(), err)
		}
		if !bytes.Equal(load(t, path), before) {
			t.Error("they are not as before")
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamageInTheMiddle: a writer that finds damage before the end cuts nothing off, and
// begins a new run.
func TestDamageInTheMiddle(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 3)
	for range 3 {
		o.write(3)
		r := o.follow(Config{Dir: dir})
		r.until("the head", func(s Stats) bool { return s.Revision == o.head() })
		r.end()
	}
	path := segmentsOf(t, dir)[0]
	bad := load(t, path)
	bad[len(bad)/2] ^= 1
	store(t, path, bad)
	r := o.follow(Config{Dir: dir})
	o.has(r)
	r.end()
	if s := r.Stats(); s.Gaps != 1 {
		t.Fatalf("%+v", s)
	}
	if got := load(t, path); string(got) != string(bad) {
		t.Fatal("the damaged file was changed")
	}
	o.same(dir, Target{}, o.head())
}

// TestMissingPart: the error names a segment that is missing, replaced, or in another place, and
// what can still be restored is.
func TestMissingPart(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{SegmentBytes: 500}, 5)
	for range 4 {
		o.write(10)
		r := o.follow(Config{Dir: dir, SegmentBytes: 500})
		r.until("the head", func(s Stats) bool { return s.Revision == o.head() })
		r.end()
	}
	files := segmentsOf(t, dir)
	if len(files) < 4 {
		t.Fatalf("%v", files)
	}
	gone, after := files[2], files[3]
	first := func(path string) int64 {
		_, revision, ok := parseName(filepath.Base(path), logPrefix, logSuffix)
		if !ok {
			t.Fatal(path)
		}
		return revision
	}
	whole := load(t, gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	text := unreachable(t, dir, Target{})
	for _, want := range []string{filepath.Base(after), filepath.Base(files[1]), fmt.Sprintf("revisions %d to %d are missing", first(gone), first(after)-1), fmt.Sprintf("newest that can be is revision %d", first(gone)-1)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	o.same(dir, Target{Revision: first(gone) - 1}, first(gone)-1)
	store(t, gone, load(t, after)) // which is complete, in another place
	if _, err := newestOf(t, dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(gone)) {
		t.Error(err)
	}
	store(t, gone, whole)
	o.same(dir, Target{}, o.head())
}

// TestPile: whatever does not fit into memory, the newest row of each key comes out, in
// the order of keys.
func TestPile(t *testing.T) {
	p := &externalSort{dir: t.TempDir()}
	defer p.close()
	value := make([]byte, 100_000)
	want := map[sqlstore.Key]int64{}
	for i := range int64(20_000) {
		key := sqlstore.Key{Resource: "r", Name: fmt.Sprintf("%04d", i*7919%1000)}
		want[key] = i + 1
		if err := p.add(&sqlstore.Row{Key: key, Revision: i + 1, Created: 1, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.seal(); err != nil {
		t.Fatal(err)
	}
	if len(p.levels) < 2 {
		t.Fatalf("only %d levels", len(p.levels))
	}
	var last sqlstore.Key
	for row, err := range p.rows {
		if err != nil {
			t.Fatal(err)
		}
		if row.Key.Compare(last) <= 0 || row.Revision != want[row.Key] || len(row.Value) != len(value) {
			t.Fatalf("%v at %d behind %v, want %d", row.Key, row.Revision, last, want[row.Key])
		}
		last = row.Key
		delete(want, row.Key)
	}
	if len(want) > 0 {
		t.Fatalf("%d keys are missing", len(want))
	}
}
