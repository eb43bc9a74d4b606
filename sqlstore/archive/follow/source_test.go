package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// origin is a database that is followed, with what its objects are at.
type origin struct {
	t  testing.TB
	d  sqlstore.Driver
	at map[sqlstore.Key]int64
	// now is the time of the next write; zero: the clock's.
	now time.Time
	rnd *rand.Rand
}

func newOrigin(t testing.TB) *origin {
	return newOriginOn(t, memory.New(memory.Config{}).Open())
}

func newOriginOn(t testing.TB, d sqlstore.Driver) *origin {
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &origin{t: t, d: d, at: map[sqlstore.Key]int64{}, rnd: rand.New(rand.NewPCG(1, 2))}
}

// write does n writes: creates, updates and deletes among forty objects.
func (o *origin) write(n int) {
	o.t.Helper()
	for range n {
		i := o.rnd.IntN(40)
		key := sqlstore.Key{Resource: []string{"pods", "configmaps"}[i%2], Namespace: "ns", Name: fmt.Sprintf("o%d", i)}
		op := sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: fmt.Appendf(nil, `{"metadata":{"name":%q},"data":%d}`, key.Name, o.rnd.Int64())}
		if at := o.at[key]; at > 0 {
			op.Verb, op.Expect = sqlstore.Update, at
			if o.rnd.IntN(4) == 0 {
				op.Verb = sqlstore.Delete
			}
		}
		if op.Verb != sqlstore.Delete && i%5 == 0 {
			op.ExpiresAt = time.Now().Add(time.Hour).Truncate(time.Microsecond)
		}
		now := o.now
		if now.IsZero() {
			now = time.Now()
		}
		out, err := o.d.Apply(o.t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, now)
		if err == nil {
			err = out[0].Err
		}
		if err != nil {
			o.t.Fatal(err)
		}
		if o.at[key] = out[0].Revisions[0]; op.Verb == sqlstore.Delete {
			delete(o.at, key)
		}
	}
}

func (o *origin) head() int64 {
	o.t.Helper()
	b, err := o.d.Bounds(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	return b.Head
}

// running is a Follower that runs.
type running struct {
	*Follower
	t    testing.TB
	stop func() error
}

func (o *origin) follow(cfg Config) *running {
	cfg.Driver, cfg.Strict = o.d, true
	if cfg.Every == 0 {
		cfg.Every = 2 * time.Millisecond
	}
	f := New(cfg)
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	ended := false
	r := &running{f, o.t, func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}}
	o.t.Cleanup(func() { _ = r.stop() })
	return r
}

// end stops it. That it waits for nothing then is what TestStopsAtOnce is about.
func (r *running) end() {
	r.t.Helper()
	if err := r.stop(); err != nil {
		r.t.Fatal(err)
	}
}

// until waits for something that the follower does.
func (r *running) until(what string, ok func(Stats) bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(r.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: never came: %+v", what, r.Stats())
		}
	}
}

// has waits until the folder has a base and everything that there is now.
func (o *origin) has(r *running) {
	o.t.Helper()
	head := o.head()
	r.until(fmt.Sprintf("revision %d and a base", head), func(s Stats) bool { return s.Revision >= head && s.Bases > 0 })
}

// filled returns a folder with a base and a log that is followed to its end.
func (o *origin) filled(cfg Config, writes int) string {
	o.t.Helper()
	dir := filepath.Join(o.t.TempDir(), "backup")
	cfg.Dir = dir
	o.write(20)
	r := o.follow(cfg)
	o.has(r)
	o.write(writes)
	o.has(r)
	r.end()
	return dir
}

// restored restores a target from a folder into a new database.
func restored(t testing.TB, dir string, target Target) (sqlstore.Driver, Restored, error) {
	t.Helper()
	l, err := List(dir)
	if err != nil {
		return nil, Restored{}, err
	}
	p, err := l.Plan(target)
	if err != nil {
		return nil, Restored{}, err
	}
	d, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "restored.db"), sqlite.Config{Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	r, err := Restore(t.Context(), d, p, Options{Scratch: t.TempDir()})
	return d, r, err
}

// same holds a restored state against the origin.
func (o *origin) same(dir string, target Target, want int64) {
	o.t.Helper()
	d, r, err := restored(o.t, dir, target)
	if err != nil {
		o.t.Fatalf("%+v: %v", target, err)
	}
	if r.Revision != want {
		o.t.Fatalf("%+v: restored revision %d, want %d", target, r.Revision, want)
	}
	c, err := Compare(o.t.Context(), d, o.d, want)
	if err != nil {
		o.t.Fatal(err)
	}
	if c.Count > 0 || c.Objects != r.Objects || c.Objects == 0 {
		o.t.Fatalf("%+v: %+v of %+v", target, c, r)
	}
}

// unreachable wants a target not to be restored, for a reason.
func unreachable(t testing.TB, dir string, target Target) string {
	t.Helper()
	_, r, err := restored(t, dir, target)
	var u *UnreachableError
	if !errors.As(err, &u) {
		t.Fatalf("%+v: %+v %v", target, r, err)
	}
	return err.Error()
}
