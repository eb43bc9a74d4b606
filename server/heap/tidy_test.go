package heap

import (
	"slices"
	"testing"
)

func TestTidyWhenNothingHappens(t *testing.T) {
	const mb = 1 << 20
	var s tidy
	for i, look := range []struct {
		live, bytes, free, cycles uint64
		want                      bool
	}{
		{100 * mb, 120 * mb, 0, 1, false},
		{100 * mb, 140 * mb, 0, 0, false}, // it grows
		{100 * mb, 140 * mb, 0, 0, false},
		{100 * mb, 140*mb + 100, 0, 0, false},
		{100 * mb, 140*mb + 200, 0, 0, true},
		{101 * mb, 101 * mb, 0, 1, false}, // it has been collected
		{101 * mb, 101 * mb, 0, 0, false},
		{101 * mb, 101 * mb, 0, 0, false},
		{101 * mb, 101*mb + 300, 0, 0, false}, // nothing to collect
		{101 * mb, 102 * mb, 0, 0, false},
		{101 * mb, 102 * mb, 60 * mb, 0, true}, // memory freed long ago is still held
		{101 * mb, 102 * mb, 60 * mb, 1, false},
		{101 * mb, 103 * mb, 6 * mb, 0, false},
		{101 * mb, 103 * mb, 6 * mb, 0, false},
		{101 * mb, 103 * mb, 6 * mb, 0, false}, // a little of both
		{101 * mb, 103 * mb, 7 * mb, 0, true},  // together enough
		{101 * mb, 103 * mb, 6 * mb, 1, false},
		{2000 * mb, 2040 * mb, 0, 1, false}, // of much that lives, a sixteenth is much
		{2000 * mb, 2050 * mb, 0, 0, false}, // of much that lives, 15 MB are next to nothing
		{2000 * mb, 2065 * mb, 0, 0, false},
		{2000 * mb, 2080 * mb, 0, 0, true},
		{2000 * mb, 2100 * mb, 0, 0, false},
	} {
		if got := s.due(usage{live: look.live, objects: look.bytes, free: look.free}, look.cycles); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}

// TestSettledAfterLoad: memory dropped since the last collection is collected a minute after it,
// once for each load.
func TestSettledAfterLoad(t *testing.T) {
	const mb = 1 << 20
	var s tidy
	looks := func(n int, u usage, cycles uint64) (due []int) {
		for i := range n {
			if s.due(u, cycles) {
				due = append(due, i)
			}
		}
		return due
	}
	for _, step := range []struct {
		name   string
		looks  int
		u      usage
		cycles uint64
		want   []int
	}{
		{"load", 10, usage{live: 200 * mb, objects: 210 * mb, allocated: 5000 * mb}, 1, nil},
		{"a minute of rest", 300, usage{live: 200 * mb, objects: 201 * mb, allocated: 5001 * mb}, 0, []int{settledAfter - 1}},
		{"a collection of the runtime's", 1, usage{live: 120 * mb, objects: 120 * mb, allocated: 5001 * mb}, 1, nil},
		{"as little as loops allocate", 300, usage{live: 120 * mb, objects: 120 * mb, allocated: 5050 * mb}, 0, nil},
		{"half of what lives once more", 300, usage{live: 120 * mb, objects: 120 * mb, allocated: 5062 * mb}, 0, []int{0}},
		{"little that lives", 300, usage{live: 30 * mb, objects: 30 * mb, allocated: 9000 * mb}, 0, nil},
	} {
		if got := looks(step.looks, step.u, step.cycles); !slices.Equal(got, step.want) {
			t.Errorf("%s: due at %v, want %v", step.name, got, step.want)
		}
	}
}

// TestLoad: the time of a collection counts as load if another one follows soon, not by itself.
func TestLoad(t *testing.T) {
	var l load
	for i, look := range []struct {
		cycles uint64
		spent  float64
		still  bool
		want   bool
	}{
		{1, 0.06, false, true},
		{0, 0, false, false},
		{1, 0.06, false, false}, // two seconds later
		{1, 0.06, false, true},
		{1, 0.01, false, false},
		{1, 0.01, true, true}, // there was load just now
		{2, 0.01, false, true},
		{0, 0, true, false},
		{0, 0, true, false},
		{0, 0, false, false},
		{1, 0.19, false, false}, // a large heap, seldom
		{1, 0.19, false, true},  // and often
	} {
		if got := l.felt(look.cycles, look.spent, look.still); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
	for range 1000 {
		l.felt(0, 0, false)
	}
	if !l.felt(1, 1.6, false) {
		t.Error("however long nothing happened, what takes more than a second is load")
	}
}
