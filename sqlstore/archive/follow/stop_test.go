package follow

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
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

// TestStopsInTime: who stops waits for a database that does not answer for less than the
// 100 ms that it may take.
func TestStopsInTime(t *testing.T) {
	o := newOrigin(t)
	d := &dumb{Driver: o.d}
	f := New(Config{Driver: d, Dir: filepath.Join(t.TempDir(), "b"), Every: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for f.Stats().Synced.IsZero() { // then it rests for an hour
		time.Sleep(time.Millisecond)
	}
	d.silent.Store(true)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := time.Duration(d.left.Load()); left <= 0 || left >= 100*time.Millisecond {
		t.Errorf("it was to be waited for %v", left)
	}
}
