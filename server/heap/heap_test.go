package heap_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/heap"
)

func TestPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live, scanned uint64
		busy          bool
		want          int
	}{
		{0, 0, false, 100},
		{32 * mb, 32 * mb, false, 100},
		{40 * mb, 10 * mb, false, 40},
		{160 * mb, 20 * mb, false, 12},
		{160 * mb, 160 * mb, false, 50},
		{1024 * mb, 64 * mb, false, 12}, // next to all of it is packed
		{1024 * mb, 512 * mb, false, 25},
		{4096 * mb, 64 * mb, false, 6},
		{4096 * mb, 2048 * mb, false, 6},
		{0, 0, true, 1000},
		{8 * mb, 8 * mb, true, 400},
		{32 * mb, 8 * mb, true, 100},
		{96 * mb, 96 * mb, true, 50},
		{512 * mb, 64 * mb, true, 50},
		{1024 * mb, 64 * mb, true, 25},
		{4096 * mb, 64 * mb, true, 6},
		{65536 * mb, 64 * mb, true, 4},
	} {
		if got := heap.Percent(c.live, c.scanned, c.busy); got != c.want {
			t.Errorf("%d live, %d of it scanned, busy %v: %d, want %d", c.live, c.scanned, c.busy, got, c.want)
		}
	}
}

// TestRun: it restores the former settings.
func TestRun(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := heap.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if was := debug.SetGCPercent(123); was != 123 {
		t.Errorf("left at %d", was)
	}
}

// TestStart: while it lasts, garbage may be as large as the live heap, and 256 MB at most; the run that follows
// restores the former settings.
func TestStart(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	held := make([]byte, 600<<20)
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		startup := heap.Start(ctx)
		time.Sleep(time.Second)
		if now := debug.SetGCPercent(-1); now < 30 || now > 45 {
			t.Errorf("beside 600 MB that live: %d", now)
		} else {
			debug.SetGCPercent(now)
		}
		if err := startup.Run(ctx); err != nil {
			t.Fatal(err)
		}
		heap.Start(ctx) // ends with its context, which is over
		synctest.Wait()
	})
	runtime.KeepAlive(held)
	if was := debug.SetGCPercent(123); was != 123 {
		t.Errorf("left at %d", was)
	}
}
