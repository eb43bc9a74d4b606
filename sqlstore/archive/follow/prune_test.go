package follow

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPrune: files older than Keep are deleted once a newer base covers them, and all
// within Keep stay.
func TestPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		dir := filepath.Join(t.TempDir(), "backup")
		r := o.follow(Config{Dir: dir, Keep: 2 * time.Second, BaseEvery: time.Second, SegmentAge: 200 * time.Millisecond})
		began := time.Now()
		heads := map[time.Time]int64{}
		for time.Since(began) < 6*time.Second {
			o.write(1)
			heads[time.Now()] = o.head()
			time.Sleep(50 * time.Millisecond)
		}
		o.has(r)
		r.end()
		l, err := List(dir)
		if err != nil || len(l.Problems) > 0 || len(l.Runs) != 1 {
			t.Fatalf("%+v %v", l, err)
		}
		run := l.Runs[0]
		if _, err := os.Stat(filepath.Join(dir, fileName(logPrefix, logSuffix, 1, 1))); !os.IsNotExist(err) {
			t.Errorf("the first segment is still there: %v", err)
		}
		if run.First == 0 || len(run.Bases) > 5 || run.Segments[0].First > run.First+1 {
			t.Errorf("%+v", run)
		}
		within := time.Now().Add(-2 * time.Second)
		for at, head := range heads {
			if at.After(within) {
				o.same(dir, Target{Revision: head}, head)
			}
		}
	})
}

// TestPruneByClock: a clock that is set ahead while a follower runs deletes nothing, and
// one that was ahead from the start leaves the newest base and all that follows it.
func TestPruneByClock(t *testing.T) {
	var c steady
	c.now()
	c.wall = c.wall.Add(-time.Hour) // as if the clock had jumped ahead by an hour since
	if ahead := time.Until(c.now()); ahead > -59*time.Minute {
		t.Errorf("a clock that was set ahead is believed: %v", ahead)
	}
	o := newOrigin(t)
	dir := o.filled(Config{}, 20)
	r := o.follow(Config{Dir: dir, BaseEvery: time.Millisecond, SegmentBytes: 1})
	r.until("more bases", func(s Stats) bool { return s.Bases > 2 })
	r.end()
	s := &session{Follower: New(Config{Dir: dir, Keep: time.Hour})}
	s.clock.first, s.clock.wall = time.Now(), time.Now().Add(1000*time.Hour)
	before := segmentsOf(t, dir)
	if err := s.prune(); err != nil {
		t.Fatal(err)
	}
	if after := segmentsOf(t, dir); len(after) != len(before) {
		t.Errorf("%v were %v", after, before)
	}
	o.same(dir, Target{}, o.head())
}

// TestPruneAfterAPause: time without a follower does not count toward Keep, as a clock that is ahead when a follower begins looks
// the same. Prune deletes older files when a new base is old enough.
func TestPruneAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		cfg := Config{Dir: filepath.Join(t.TempDir(), "backup"), Keep: time.Minute, BaseEvery: 5 * time.Second, Every: 50 * time.Millisecond}
		bases := func() (names []string) {
			t.Helper()
			files, err := filepath.Glob(filepath.Join(cfg.Dir, basePrefix+"*"+baseSuffix))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				names = append(names, filepath.Base(f))
			}
			return names
		}
		run := func(d time.Duration) {
			t.Helper()
			r := o.follow(cfg)
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				o.write(1)
			}
			o.has(r)
			r.end()
		}
		run(20 * time.Second)
		before := bases()
		if len(before) < 3 {
			t.Fatalf("the bases are %q", before)
		}
		time.Sleep(1000 * time.Hour)
		run(30 * time.Second)
		if now := bases(); !slices.Equal(now[:min(len(before), len(now))], before) || len(now) <= len(before) {
			t.Fatalf("after 30 seconds the bases are %q, and were %q", now, before)
		}
		time.Sleep(1000 * time.Hour)
		run(2 * time.Minute)
		if now := bases(); slices.Contains(before, now[0]) || len(now) < 8 {
			t.Errorf("in the end the bases are %q, and were %q", now, before)
		}
	})
}

// TestListSays: the list has the content of a folder, and its faults.
func TestListSays(t *testing.T) {
	o := newOrigin(t)
	dir := o.filled(Config{}, 5)
	path := segmentsOf(t, dir)[0]
	store(t, filepath.Join(dir, "notes.txt"), []byte("of an operator"))
	if err := os.Rename(path, filepath.Join(dir, fileName(logPrefix, logSuffix, 7, 99))); err != nil {
		t.Fatal(err)
	}
	l, err := List(dir)
	if err != nil || len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "it was written as part of run 1") {
		t.Fatalf("%+v %v", l, err)
	}
}

// TestPartialBases: the files of an unfinished base are deleted, whatever the name of the folder,
// and nothing else.
func TestPartialBases(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[prod]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"base-000001.partial", "base-000002.partial.partial", "other.partial"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removePartial(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "other.partial" {
		t.Errorf("%v %v", left, err)
	}
}
