package heap

import "testing"

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
		{101 * mb, 102 * mb, 60 * mb, 0, true}, // what was collected long ago is still held
		{101 * mb, 102 * mb, 60 * mb, 1, false},
	} {
		if got := s.due(usage{live: look.live, objects: look.bytes, free: look.free}, look.cycles); got != look.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}
