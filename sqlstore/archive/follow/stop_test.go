package follow

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// dumb is a database that stops answering; left is how long it was last waited for.
type dumb struct {
	sqlstore.Driver
	silent atomic.Bool
	left   atomic.Int64
}

func (d *dumb) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	if !d.silent.Load() {
		return d.Driver.Bounds(ctx)
	}
	if at, ok := ctx.Deadline(); ok {
		d.left.Store(int64(time.Until(at)))
	}
	<-ctx.Done()
	return sqlstore.Bounds{}, ctx.Err()
}

// TestStopsInTime: a stop waits at most 100 ms for a database that does not
// answer.
func TestStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		d := &dumb{Driver: o.d}
		f := New(Config{Driver: d, Dir: filepath.Join(t.TempDir(), "b"), Every: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait() // it rests for an hour
		if f.Stats().Synced.IsZero() {
			t.Fatal("it did not follow")
		}
		d.silent.Store(true)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if left := time.Duration(d.left.Load()); left <= 0 || left >= 100*time.Millisecond {
			t.Errorf("it was to be waited for %v", left)
		}
	})
}

// TestStopsAtOnce: a follower that pauses, or waits for a retry, stops at once.
func TestStopsAtOnce(t *testing.T) {
	for name, fails := range map[string]bool{"rests": false, "tries again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrigin(t)
				dir := filepath.Join(t.TempDir(), "b")
				o.write(5)
				r := o.follow(Config{Dir: dir, Every: time.Minute})
				time.Sleep(time.Hour)
				synctest.Wait()
				if s := r.Stats(); s.Revision != o.head() || s.Bases == 0 {
					t.Fatalf("%+v", s)
				}
				if fails {
					if err := os.Rename(dir, dir+".away"); err != nil {
						t.Fatal(err)
					}
					o.write(1)
					time.Sleep(time.Hour)
					synctest.Wait()
					if s := r.Stats(); s.Failures < 100 {
						t.Fatalf("%+v", s)
					}
				}
				time.Sleep(time.Second)
				began := time.Now()
				if err := r.stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("it waited for %v", took)
				}
			})
		})
	}
}

// TestHoldsTheLastSecond: whenever it is killed, all that was committed until a second and a
// round before is in its files, whether something is written or not.
func TestHoldsTheLastSecond(t *testing.T) {
	const every = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		o := newOrigin(t)
		dir := filepath.Join(t.TempDir(), "b")
		o.write(5)
		r := o.follow(Config{Dir: dir, Every: every})
		time.Sleep(2 * time.Second)
		began := time.Now()
		for i := range 200 {
			if i%100 < 30 {
				o.write(3)
			}
			head := o.head()
			time.Sleep(37 * time.Millisecond)
			synctest.Wait()
			l, err := List(dir)
			if err != nil || len(l.Runs) != 1 {
				t.Fatalf("%+v %v", l, err)
			}
			run := l.Runs[0]
			if late := time.Since(run.Until); late > seenEvery+every {
				t.Errorf("after %v it has what was committed until %v before", time.Since(began), late)
			}
			if run.Last != head {
				t.Errorf("after %v it has revision %d, and %d was written %v before", time.Since(began), run.Last, head, 37*time.Millisecond)
			}
		}
		r.end()
	})
}
