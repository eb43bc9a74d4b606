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

// pausing follows an origin, with pauses between its runs.
type pausing struct {
	*origin
	cfg Config
}

func newPausing(t *testing.T) *pausing {
	dir := filepath.Join(t.TempDir(), "backup")
	return &pausing{newOrigin(t), Config{Dir: dir, Keep: time.Minute, BaseEvery: 5 * time.Second, Every: 50 * time.Millisecond}}
}

// run follows for a while, with a write each second.
func (p *pausing) run(d time.Duration) {
	p.t.Helper()
	r := p.follow(p.cfg)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		p.write(1)
	}
	p.has(r)
	r.end()
}

// bases returns the names of the bases, oldest first.
func (p *pausing) bases() (names []string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.cfg.Dir, basePrefix+"*"+baseSuffix))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

// TestPruneAfterAPause: time without a follower does not count toward Keep, as a clock that is ahead when a follower begins looks
// the same. Prune deletes older files when a new base is old enough.
func TestPruneAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing(t)
		p.run(20 * time.Second)
		before := p.bases()
		if len(before) < 3 {
			t.Fatalf("the bases are %q", before)
		}
		time.Sleep(1000 * time.Hour)
		p.run(30 * time.Second)
		if now := p.bases(); !slices.Equal(now[:min(len(before), len(now))], before) || len(now) <= len(before) {
			t.Fatalf("after 30 seconds the bases are %q, and were %q", now, before)
		}
		time.Sleep(1000 * time.Hour)
		p.run(2 * time.Minute)
		if now := p.bases(); slices.Contains(before, now[0]) || len(now) < 8 {
			t.Errorf("in the end the bases are %q, and were %q", now, before)
		}
	})
}

// TestPruneAfterFurtherStarts: a pause, or a clock that was set ahead, does not count toward Keep for later followers either: they
// find it in the log.
func TestPruneAfterFurtherStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing(t)
		p.run(20 * time.Second)
		before := p.bases()
		for range 2 {
			time.Sleep(1000 * time.Hour)
			p.run(6 * time.Second)
			p.run(6 * time.Second)
		}
		if now := p.bases(); len(now) <= len(before) || !slices.Equal(now[:len(before)], before) {
			t.Fatalf("after 44 seconds the bases are %q, and were %q", now, before)
		}
		p.run(time.Minute)
		if now := p.bases(); slices.Contains(now, before[0]) {
			t.Errorf("after 104 seconds the bases are %q, and were %q", now, before)
		}
		p.same(p.cfg.Dir, Target{}, p.head())
	})
}

// TestAgeOfBases: steps of the log's time after a base do not count toward its age, and what may be on either side counts as what makes
// the base younger. A clock that was ahead, and is right again, makes no base older than it is.
func TestAgeOfBases(t *testing.T) {
	now := time.Now()
	c := steady{wall: now.Round(0), first: now, pauses: []pause{
		{1, 50, 720 * time.Hour}, {1, 60, -720 * time.Hour}, {2, 0, 10 * time.Hour}, {2, 80, time.Hour},
	}}
	for _, one := range []struct {
		run      int
		revision int64
		paused   time.Duration
	}{
		{1, 10, 11 * time.Hour}, {1, 49, 11 * time.Hour}, {1, 55, 0}, {1, 59, 11 * time.Hour}, {1, 60, 11 * time.Hour},
		{2, 70, time.Hour}, {2, 79, time.Hour}, {2, 80, 0}, {3, 1, 0},
	} {
		b := Base{Run: one.run, Revision: one.revision, Taken: now.Add(-24 * time.Hour)}
		if age, want := c.age(&b), 24*time.Hour-one.paused; age < want || age > want+time.Minute {
			t.Errorf("the age of a base of run %d at revision %d is %s, want %s", one.run, one.revision, age, want)
		}
	}
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
