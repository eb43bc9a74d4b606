package sqlstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// paced is a driver of which only is asked whether writers wait.
type paced struct{ noDriver }

func (paced) ConcurrentTrim() bool { return false }

// TestPackingKeepsUp: on a machine where each commit is slow, packing still moves more rows in a
// second than 1,000 nodes write, and rests for most of the time that writers wait.
func TestPackingKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, reading, commit = 200, 10 * time.Millisecond, 20 * time.Millisecond
		began, rows, done := time.Now(), 0, 0
		err := inPieces(context.Background(), paced{}, restWaited, leastPack, func(limit int) (bool, time.Duration, error) {
			time.Sleep(reading + commit)
			rows, done = rows+limit, done+1
			return done < pieces, commit, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if rate := float64(rows) / took.Seconds(); rate < 500 {
			t.Errorf("%.0f rows a second", rate)
		}
		if share := float64(pieces*commit) / float64(took); share > 0.25 {
			t.Errorf("writers wait for %.0f%% of the time", 100*share)
		}
	})
}

// slowFloors answers what its floors were when it was asked.
type slowFloors struct {
	noDriver
	now   Floors
	ready chan struct{}
}

func (d *slowFloors) Floors(context.Context) (Floors, error) {
	f := d.now
	<-d.ready
	return f, nil
}

func (d *slowFloors) Retain(_ context.Context, to Floors) (Floors, error) {
	d.now = to
	return to, nil
}

// TestFloorsDoNotFallBack: floors that were read before a raise do not replace the raised ones.
func TestFloorsDoNotFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowFloors{now: Floors{Log: 10, Past: map[string]int64{"": 5}}, ready: make(chan struct{})}
		s := New(d, Config{Clock: time.Now})
		ctx := t.Context()
		go s.updateFloors(ctx, d.Floors)
		synctest.Wait()
		go s.updateFloors(ctx, func(ctx context.Context) (Floors, error) {
			return d.Retain(ctx, Floors{Log: 20, Past: map[string]int64{"": 15}})
		})
		synctest.Wait()
		close(d.ready)
		synctest.Wait()
		if at, log := s.PastFloor("pods"), s.Floor(); at != 15 || log != 20 {
			t.Errorf("snapshots reach back to %d and the log to %d; want 15 and 20", at, log)
		}
	})
}
