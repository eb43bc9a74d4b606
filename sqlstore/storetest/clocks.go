package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// clocks are a wall clock and the time that passes, under a test's hand.
type clocks struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
	rounds  atomic.Int64 // of the compactor
	sweeps  atomic.Int64
	follows atomic.Bool // the server does not lead
}

func (c *clocks) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *clocks) since() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

// pass lets time go by; jump sets the wall clock.
func (c *clocks) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d
}

func (c *clocks) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// round waits until the compactor and the sweeper have seen the current state.
func (c *clocks) round(t testing.TB) {
	t.Helper()
	rounds, sweeps := c.rounds.Load(), c.sweeps.Load()
	waitFor(t, "the compactor to look", func() bool { return c.rounds.Load() >= rounds+2 })
	waitFor(t, "the sweeper to look", func() bool { return c.sweeps.Load() >= sweeps+2 })
}

// swept counts the rounds of the sweeper, which reports nothing if it has nothing to do. Once it leads, it leads forever: a
// new leader, such as one after a lead that a slow machine did not renew, has not seen how time passed, and
// relies on the wall clock again.
type swept struct {
	sqlstore.Driver
	clocks *clocks
}

func (s swept) Lead(context.Context, string) (<-chan struct{}, func(), bool, error) {
	return nil, func() {}, !s.clocks.follows.Load(), nil
}

// Trim and Apply work without a lead, of which the driver knows nothing.
func (s swept) Trim(ctx context.Context, to int64, limit int) (int, error) {
	return s.Driver.Trim(sqlstore.WithLead(ctx, ""), to, limit)
}

func (s swept) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Lead = ""
	}
	return s.Driver.Apply(ctx, batch, now)
}

func (s swept) Expired(ctx context.Context, now time.Time, limit int) ([]sqlstore.Row, error) {
	defer s.clocks.sweeps.Add(1)
	return s.Driver.Expired(ctx, now, limit)
}

// counter counts the rounds of the compactor.
type counter struct{ rounds *atomic.Int64 }

func (c counter) Committed(int, int, time.Duration, error)             {}
func (c counter) Applied(int64, int64, time.Duration)                  {}
func (c counter) Reloaded(int64, time.Duration)                        {}
func (c counter) Packed(int, int64, int64)                             {}
func (c counter) Trimmed(int64, int)                                   { c.rounds.Add(1) }
func (c counter) Expired(int)                                          {}
func (c counter) EffectiveRetention(sqlstore.Retention, time.Duration) {}
func (c counter) Queried(string, time.Duration, error)                 {}
func (c counter) Refused(string, sqlstore.Kind)                        {}

// timed serves a driver by clocks of the test, with a retention of a minute.
func timed(t testing.TB, d sqlstore.Driver) (*server, *clocks) {
	t.Helper()
	c := &clocks{wall: start}
	return timedBy(t, d, c), c
}

// timedBy is timed with given clocks.
func timedBy(t testing.TB, d sqlstore.Driver, c *clocks) *server {
	t.Helper()
	return serve(t, swept{d, c}, sqlstore.Config{
		Retention: time.Minute, CompactEvery: 2 * time.Millisecond, ExpireEvery: 2 * time.Millisecond,
		Clock: c.now, Elapsed: c.since, Observer: counter{rounds: &c.rounds},
	})
}

var clockTests = map[string]func(*testing.T, Database){
	"history is kept for its time, whatever the clock is set to": func(t *testing.T, db Database) {
		d := db.Open(t)
		s, c := timed(t, d)
		c.round(t)
		r := write(t, s, create(pod("a"), "0").Ops[0]).Revisions[0]
		for _, jump := range []time.Duration{5 * time.Hour, -10 * time.Hour, 24 * 365 * 50 * time.Hour, -24 * 365 * 50 * time.Hour} {
			first := r
			for range 3 {
				r = write(t, s, update(pod("a"), r, "x").Ops[0]).Revisions[0]
			}
			c.round(t)
			floor := s.Floor()
			c.jump(jump)
			r = write(t, s, update(pod("a"), r, "after the jump").Ops[0]).Revisions[0]
			c.round(t)
			c.pass(50 * time.Second)
			c.round(t)
			if s.Floor() != floor {
				t.Fatalf("50s after a jump by %v the floor has moved from %d to %d", jump, floor, s.Floor())
			}
			if row, err := s.Read(t.Context(), pod("a"), first); err != nil || row.Revision != first {
				t.Fatalf("50s after a jump by %v the past is %+v, %v", jump, row, err)
			}
			c.pass(time.Minute)
			c.round(t)
			waitFor(t, "history to go when its time has passed", func() bool { return s.Floor() == r })
		}
	},
	"history from before a start goes by its time of writing": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "0"))
		applyAt(t, d, start.Add(-30*time.Second), update(pod("a"), 1, "1"))
		applyAt(t, d, start.Add(5*time.Hour), update(pod("a"), 2, "from a clock that was wrong"))
		s, c := timed(t, d)
		c.round(t)
		if s.Floor() != 0 {
			t.Fatalf("at the start the floor is %d", s.Floor())
		}
		c.jump(10 * time.Hour)
		c.round(t)
		if s.Floor() != 0 {
			t.Fatalf("after a jump the floor is %d", s.Floor())
		}
		c.pass(61 * time.Second)
		waitFor(t, "the floor to rise", func() bool { return s.Floor() == 3 })
	},
	"history from before a start was not written before the history below it": func(t *testing.T, db Database) {
		d := db.Open(t)
		applyAt(t, d, start.Add(-3*time.Hour), create(pod("a"), "0"))
		applyAt(t, d, start.Add(-50*time.Second), update(pod("a"), 1, "1"))
		for r := range int64(4) {
			applyAt(t, d, start.Add(time.Duration(r)*time.Second-5*time.Hour), update(pod("a"), 2+r, "from a clock that was set back"))
		}
		applyAt(t, d, start.Add(-10*time.Second), update(pod("a"), 6, "from a clock that was right again"))
		s, c := timed(t, d)
		c.round(t)
		if s.Floor() != 1 {
			t.Fatalf("at the start the floor is %d, and revision 2 was written less than a minute before", s.Floor())
		}
		c.pass(11 * time.Second)
		c.round(t)
		if s.Floor() != 2 {
			t.Fatalf("11s later the floor is %d, and revisions from 3 on may have been written at any time after revision 2", s.Floor())
		}
		c.pass(40 * time.Second)
		waitFor(t, "the floor to rise", func() bool { return s.Floor() == 7 })
	},
	"old states from before a start were not written before those below them": func(t *testing.T, db Database) {
		d := db.Open(t)
		applyAt(t, d, start.Add(-3*time.Hour), create(pod("a"), "0"))
		applyAt(t, d, start.Add(-50*time.Second), update(pod("a"), 1, "1"))
		retain(t, sqlstore.Floors{Log: 2, Past: map[string]int64{"": 0}}, d)
		for r := range int64(4) {
			applyAt(t, d, start.Add(time.Duration(r)*time.Second-5*time.Hour), update(pod("a"), 2+r, "from a clock that was set back"))
		}
		retain(t, sqlstore.Floors{Log: 4, Past: map[string]int64{"": 0}}, d)
		for _, c := range []struct {
			back time.Duration
			want int64
		}{{time.Minute, 1}, {51 * time.Second, 1}, {48 * time.Second, 2}, {time.Second, 2}, {4 * time.Hour, 0}} {
			if r, _, err := d.Aged(t.Context(), time.Time{}, start.Add(-c.back), start); err != nil || r != c.want {
				t.Errorf("%s before, the newest revision was certainly not older than %d, want %d (%v)", c.back, r, c.want, err)
			}
		}
		applyAt(t, d, start.Add(-10*time.Second), update(pod("a"), 6, "from a clock that was right again"))
		for _, c := range []struct {
			back time.Duration
			want int64
		}{{time.Minute, 1}, {11 * time.Second, 2}, {9 * time.Second, 7}} {
			if r, _, err := d.Aged(t.Context(), time.Time{}, start.Add(-c.back), start); err != nil || r != c.want {
				t.Errorf("%s before, the newest revision was certainly not older than %d, want %d (%v)", c.back, r, c.want, err)
			}
		}
	},
	"a clock that was ahead takes no other times of old states with it": func(t *testing.T, db Database) {
		d := db.Open(t)
		applyAt(t, d, start, create(pod("a"), `{"n":1}`))
		applyAt(t, d, start.Add(24*365*time.Hour), update(pod("a"), 1, `{"n":2}`))
		for r := int64(2); r < 5; r++ {
			applyAt(t, d, start.Add(time.Duration(r)*10*time.Second), update(pod("a"), r, fmt.Sprintf(`{"n":%d}`, r+1)))
		}
		retain(t, sqlstore.Floors{Log: 4, Past: map[string]int64{"": 0}}, d)
		packAll(t, d, 10)
		retain(t, sqlstore.Floors{Log: 4, Past: map[string]int64{"": 3}}, d)
		if _, err := d.Forget(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		if r, err := d.RevisionAt(t.Context(), start.Add(35*time.Second)); r != 4 || err != nil {
			t.Errorf("the revision after 35s is %d, %v, want 4", r, err)
		}
	},
	"history is kept for its time by a server that starts with its clock ahead": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "0"))
		applyAt(t, d, start, update(pod("a"), 1, "1"))
		c := &clocks{wall: start.Add(30 * 24 * time.Hour)}
		s := timedBy(t, d, c)
		kept := func() {
			t.Helper()
			c.round(t)
			if row, err := s.Read(t.Context(), pod("a"), 1); s.Floor() != 0 || err != nil || string(row.Value) != "0" {
				t.Fatalf("after %v the floor is %d, and the past is %s, %v", c.since(), s.Floor(), row.Value, err)
			}
		}
		kept()
		write(t, s, create(pod("b"), "0").Ops[0])
		c.pass(45 * time.Second)
		kept()
		c.pass(16 * time.Second)
		waitFor(t, "the history from before the start to go", func() bool { return s.Floor() >= 2 })
	},
	"history is kept for its time by a server that begins to compact while its clock is ahead": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "0"))
		applyAt(t, d, start, update(pod("a"), 1, "1"))
		c := &clocks{wall: start}
		c.follows.Store(true)
		s := timedBy(t, d, c)
		c.pass(5 * time.Minute) // longer than the retention
		r := write(t, s, update(pod("a"), 2, "2").Ops[0]).Revisions[0]
		write(t, s, update(pod("a"), r, "3").Ops[0])
		c.jump(30 * 24 * time.Hour)
		c.follows.Store(false)
		c.round(t)
		if row, err := s.Read(t.Context(), pod("a"), r); err != nil || string(row.Value) != "2" {
			t.Fatalf("the floor is %d, and the past is %s, %v", s.Floor(), row.Value, err)
		}
		c.pass(61 * time.Second)
		waitFor(t, "the history to go", func() bool { return s.Floor() > r })
	},
	"an expiring object goes in time after a clock was set back and was right again": func(t *testing.T, db Database) {
		d := db.Open(t)
		s, c := timed(t, d)
		c.round(t)
		k := key("events", "default", "a")
		write(t, s, sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: []byte("seen"), ExpiresAt: s.Now().Add(time.Minute)})
		for _, jump := range []time.Duration{-5 * time.Hour, 8 * time.Hour, -6 * time.Hour, 3 * time.Hour} {
			c.jump(jump)
			c.pass(14 * time.Second)
			c.round(t)
			if _, err := d.Read(t.Context(), k, 0); err != nil {
				t.Fatalf("after a jump by %s: %v", jump, err)
			}
		}
		c.pass(5 * time.Second)
		waitFor(t, "the object to go", func() bool {
			_, err := d.Read(t.Context(), k, 0)
			return err != nil
		})
	},
	"nothing expires because a clock was set": func(t *testing.T, db Database) {
		d := db.Open(t)
		s, c := timed(t, d)
		c.round(t)
		event := func(name string) sqlstore.Key { return key("events", "default", name) }
		put := func(name string) {
			t.Helper()
			write(t, s, sqlstore.Op{Verb: sqlstore.Create, Key: event(name), Value: []byte("seen"), ExpiresAt: s.Now().Add(time.Hour)})
		}
		there := func(name string, want bool) {
			t.Helper()
			c.round(t)
			_, err := d.Read(t.Context(), event(name), 0)
			if want && err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !want {
				waitFor(t, "the end of "+name, func() bool {
					_, err := d.Read(t.Context(), event(name), 0)
					return err != nil
				})
			}
		}
		put("before")
		c.jump(5 * time.Hour)
		there("before", true)
		put("ahead")
		c.pass(59 * time.Minute)
		there("before", true)
		there("ahead", true)
		c.pass(2 * time.Minute)
		there("before", false)
		c.round(t)
		there("ahead", false)

		put("again")
		c.jump(-5 * time.Hour)
		there("again", true)
		put("back")
		c.pass(59 * time.Minute)
		there("back", true)
		c.pass(2 * time.Minute)
		there("back", false)
		c.pass(6 * time.Hour)
		c.round(t)
		c.pass(61 * time.Minute) // a server that sees only the ends of so long a step takes it for a jump
		there("again", false)
	},
}
