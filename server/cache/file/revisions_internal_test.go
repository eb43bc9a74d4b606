package file

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRevisions: each revision is taken once, however many goroutines ask for it at once, and the others are left.
func TestRevisions(t *testing.T) {
	var set Revisions
	if set.Take(1) || set.Left() != nil {
		t.Error("an empty set has something")
	}
	some := []int64{1, 63, 64, 65, 127, 128, 5000, 1 << 40, 1<<40 + 63, math.MaxInt64, 0, -1, -64, -65}
	set.Add(some[:7])
	set.Add(some[5:])
	for i := int64(1000); i < 3000; i += 3 {
		set.Add([]int64{i})
	}
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := int64(1000); i < 3000; i++ {
				if set.Take(i) {
					taken.Add(1)
				}
			}
		})
	}
	workers.Wait()
	if taken.Load() != 667 {
		t.Errorf("%d were taken", taken.Load())
	}
	for _, other := range []int64{2, 62, 66, 126, 1<<40 + 1, -2, -63, 1 << 41} {
		if set.Take(other) {
			t.Errorf("%d was taken", other)
		}
	}
	if !set.Take(64) || set.Take(64) || !set.Take(-65) {
		t.Error("64 and -65 are not taken once")
	}
	want := slices.DeleteFunc(slices.Clone(some), func(n int64) bool { return n == 64 || n == -65 })
	slices.Sort(want)
	if got := set.Left(); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}
