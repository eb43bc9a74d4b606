package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// TestEveryRevision: each revision since the base comes back as it was, from segments of
// which each has few frames.
func TestEveryRevision(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{SegmentBytes: 2000}, 60)
	l, err := List(dir)
	if err != nil || len(l.Problems) > 0 || len(l.Runs) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
	for revision := l.Runs[0].First; revision <= l.Runs[0].Last; revision++ {
		o.same(dir, Target{Revision: revision}, revision)
	}
	o.same(dir, Target{}, o.head())
	for _, wrong := range []int64{1, o.head() + 1} {
		if text := unreachable(t, dir, Target{Revision: wrong}); !strings.Contains(text, "newest that can be is revision") {
			t.Error(text)
		}
	}
	err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[info.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoesOn: a follower continues where the previous one ended, however that ended.
func TestGoesOn(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 10)
	for range 5 {
		o.write(7)
		r := o.follow(Config{Dir: dir})
		head := o.head()
		r.until("the head", func(s Stats) bool { return s.Revision >= head })
		if s := r.Stats(); s.Bases != 0 || s.Gaps != 0 {
			t.Fatalf("%+v", s)
		}
		r.end()
	}
	o.same(dir, Target{}, o.head())
	l, err := List(dir)
	if err != nil || len(l.Runs) != 1 || len(l.Runs[0].Segments) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
}

// TestOneWriter: a second follower of a folder is refused.
func TestOneWriter(t *testing.T) {
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "backup")
	r := o.follow(Config{Dir: dir})
	r.until("a start", func(s Stats) bool { return !s.Synced.IsZero() })
	if err := New(Config{Dir: dir, Driver: o.d, Strict: true}).Run(t.Context()); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	r.end()
	again := o.follow(Config{Dir: dir})
	again.until("a start", func(s Stats) bool { return s.Revision == o.head() && s.Active })
	again.end()
}

// TestGap: if the database has compacted revisions that were not followed, there is a new base,
// and a reported gap.
func TestGap(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 10)
	before := o.head()
	o.write(20)
	if _, err := o.d.Trim(t.Context(), before+5, 1000); err != nil {
		t.Fatal(err)
	}
	r := o.follow(Config{Dir: dir})
	o.has(r)
	if s := r.Stats(); s.Gaps != 1 {
		t.Fatalf("%+v", s)
	}
	o.write(3)
	o.has(r)
	r.end()
	o.same(dir, Target{}, o.head())
	if _, got, err := restored(t, dir, Target{Revision: before}); err != nil || got.Revision != before {
		t.Fatalf("%+v %v", got, err)
	}
	if text := unreachable(t, dir, Target{Revision: before + 5}); !strings.Contains(text, "has a gap from revision") {
		t.Error(text)
	}
	l, err := List(dir)
	if err != nil || len(l.Runs) != 2 || len(l.Problems) > 0 {
		t.Fatalf("%+v %v", l, err)
	}
}

// TestTimeInAGap: a state of a time within a gap cannot be restored, and no older one is restored in its place.
func TestTimeInAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		dir := o.filled(Config{}, 10)
		stopped, last := time.Now(), o.head()
		time.Sleep(time.Hour)
		o.write(5)
		missed := time.Now()
		time.Sleep(time.Hour)
		o.write(5)
		if _, err := o.d.Trim(t.Context(), o.head()-1, 1000); err != nil {
			t.Fatal(err)
		}
		r := o.follow(Config{Dir: dir})
		o.has(r)
		r.end()
		for _, at := range []time.Time{stopped.Add(time.Minute), missed, missed.Add(30 * time.Minute)} {
			if text := unreachable(t, dir, Target{Time: at}); !strings.Contains(text, fmt.Sprintf("has a gap from revision %d", last)) {
				t.Error(text)
			}
		}
		if _, got, err := restored(t, dir, Target{Revision: last}); err != nil || got.Revision != last {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// losing is a database that compacts what a follower reads.
type losing struct {
	sqlstore.Driver
	from atomic.Int64 // the revision behind which nothing is there; 0: all is
}

func (l *losing) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	if from := l.from.Load(); from > 0 && after >= from {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: after + 1}
	}
	return l.Driver.Changes(ctx, after, limit, previous)
}

// TestGapWithinARound: where a database compacts commits while a follower reads them, the log is complete up to the last of those that
// were read.
func TestGapWithinARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		d := &losing{Driver: o.d}
		o.d = d
		dir := filepath.Join(t.TempDir(), "backup")
		o.write(5)
		r := o.follow(Config{Dir: dir, Every: time.Hour, SegmentAge: 24 * time.Hour})
		synctest.Wait()
		o.write(leastPage)
		d.from.Store(o.head())
		read := time.Now()
		time.Sleep(10 * time.Minute)
		o.write(10)
		missed := time.Now()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if s := r.Stats(); s.Gaps != 1 {
			t.Fatalf("%+v", s)
		}
		if text := unreachable(t, dir, Target{Time: missed}); !strings.Contains(text, "has a gap from revision") {
			t.Error(text)
		}
		if _, got, err := restored(t, dir, Target{Time: read}); err != nil || got.Revision != d.from.Load() {
			t.Errorf("%+v %v", got, err)
		}
		r.end()
	})
}

// TestIdle: a follower continues after a time without commits that is longer than a segment is written to, also where an earlier version
// ended a segment without commits.
func TestIdle(t *testing.T) {
	for name, ended := range map[string]bool{"at the beginning of a run": false, "after commits": false, "an ended segment": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrigin(t)
				o.write(5)
				cfg := Config{Dir: filepath.Join(t.TempDir(), "backup"), SegmentAge: time.Minute, Every: time.Second}
				r := o.follow(cfg)
				if name != "at the beginning of a run" {
					time.Sleep(2 * time.Minute)
					o.write(5)
				}
				time.Sleep(20 * time.Minute)
				if ended {
					r.end()
					end(t, segmentsOf(t, cfg.Dir))
					r = o.follow(cfg)
				}
				o.write(5)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if s := r.Stats(); s.Revision != o.head() || s.Failures > 0 || s.Gaps > 0 || s.LastError != "" {
					t.Fatalf("%+v", s)
				}
				r.end()
				o.same(cfg.Dir, Target{}, o.head())
				if l, err := List(cfg.Dir); err != nil || len(l.Runs) != 1 || len(l.Problems) > 0 {
					t.Errorf("%+v %v", l, err)
				}
			})
		})
	}
}

// end ends the last of some segments.
func end(t *testing.T, segments []string) {
	t.Helper()
	path := segments[len(segments)-1]
	w, err := newWriter(filepath.Dir(path), 1<<20, time.Hour, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.zip.Close()
	r, err := w.resume(path)
	if err != nil || r.last != nil {
		t.Fatalf("%+v, %v: it has commits", r.last, err)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
}

// TestQuiet: a database that has compacted all that is followed, and no more, is followed without a gap.
func TestQuiet(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 10)
	key := sqlstore.Key{Resource: "pods", Namespace: "ns", Name: "last"}
	if _, err := o.d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: []byte("{}")}}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	head := o.head()
	r := o.follow(Config{Dir: dir})
	r.until("the head", func(s Stats) bool { return s.Revision == head })
	r.end()
	if _, err := o.d.Trim(t.Context(), head, 1000); err != nil {
		t.Fatal(err)
	}
	r = o.follow(Config{Dir: dir})
	r.until("a round", func(s Stats) bool { return !s.Synced.IsZero() })
	o.write(5)
	head = o.head()
	r.until("the head", func(s Stats) bool { return s.Revision == head })
	if s := r.Stats(); s.Gaps != 0 || s.Bases != 0 {
		t.Errorf("%+v", s)
	}
	r.end()
	o.same(dir, Target{}, head)
}

// TestSetBack: a database that was restored to an earlier state, and went on, is another
// run, also where it has reached the revision of the backup again.
func TestSetBack(t *testing.T) {
	for name, further := range map[string]int{"behind": 2, "ahead": 30, "ahead, after a segment without commits": 30} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			dir := o.filled(Config{}, 10)
			if strings.HasSuffix(name, "without commits") {
				segments := len(segmentsOf(t, dir))
				r := o.follow(Config{Dir: dir, SegmentAge: time.Nanosecond})
				r.until("another segment", func(Stats) bool { return len(segmentsOf(t, dir)) > segments })
				r.end()
			}
			old := o.head() - 5
			back, _, err := restored(t, dir, Target{Revision: old})
			if err != nil {
				t.Fatal(err)
			}
			other := &origin{t: t, d: back, at: map[sqlstore.Key]int64{}, rnd: o.rnd}
			for row, err := range snapshot(t.Context(), back, old) {
				if err != nil {
					t.Fatal(err)
				}
				other.at[row.Key] = row.Revision
			}
			other.write(further)
			r := other.follow(Config{Dir: dir})
			other.has(r)
			if s := r.Stats(); s.Gaps != 1 {
				t.Fatalf("%+v", s)
			}
			r.end()
			other.same(dir, Target{}, other.head())
		})
	}
}

// TestAnotherCluster: a folder is of one cluster.
func TestAnotherCluster(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 5)
	other := newOrigin(t)
	other.write(100)
	if err := New(Config{Dir: dir, Driver: other.d, Strict: true}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another folder is needed") {
		t.Fatal(err)
	}
}

// TestTimes: a time means the newest revision written by then, also where the clock was
// set back and ahead meanwhile.
func TestTimes(t *testing.T) {
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "backup")
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	o.now = began
	o.write(10)
	r := o.follow(Config{Dir: dir})
	o.has(r)
	at := map[time.Duration]int64{}
	for _, after := range []time.Duration{10 * time.Minute, 20 * time.Minute, 5 * time.Minute, 30 * time.Minute} {
		o.now = began.Add(after)
		o.write(5)
		at[after] = o.head()
		o.has(r)
	}
	r.end()
	for after, want := range map[time.Duration]int64{
		30 * time.Minute: at[30*time.Minute], 31 * time.Minute: at[30*time.Minute],
		29 * time.Minute: at[5*time.Minute], 5 * time.Minute: at[5*time.Minute], 12 * time.Minute: at[5*time.Minute],
	} {
		o.same(dir, Target{Time: began.Add(after)}, want)
	}
	if text := unreachable(t, dir, Target{Time: began.Add(2 * time.Minute)}); !strings.Contains(text, "the oldest that can be restored") {
		t.Error(text)
	}
	if text := unreachable(t, dir, Target{Time: time.Now().Add(time.Hour)}); !strings.Contains(text, "with everything until") {
		t.Error(text)
	}
}

// TestFolderGone: a folder that goes away and comes back is continued; meanwhile its absence is
// reported, and nothing is created in its place.
func TestFolderGone(t *testing.T) {
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "backup")
	r := o.follow(Config{Dir: dir})
	o.write(5)
	o.has(r)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	o.write(5)
	r.until("a failure", func(s Stats) bool { return s.Failures > 1 && strings.Contains(s.LastError, dir) })
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the folder was made: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	head := o.head()
	r.until("the head", func(s Stats) bool { return s.Revision == head && s.LastError == "" })
	r.end()
	o.same(dir, Target{}, head)
}
