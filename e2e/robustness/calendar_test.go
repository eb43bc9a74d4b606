//go:build unix

package main

import (
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// TestCalendar: whatever the seed, the newest release comes within two rounds, the oldest within four, and in fifteen rounds at least one
// between. A release that is named is that of all rounds.
func TestCalendar(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		c, err := newCalendar(drawn, seed)
		if err != nil {
			t.Fatal(err)
		}
		first, between := map[cluster.Release]int{}, 0
		for round := 1; round <= 15; round++ {
			r := c.next()
			if _, ok := first[r]; !ok {
				first[r] = round
			}
			if r < cluster.Oldest || r > cluster.Newest {
				t.Errorf("seed %d: round %d has release %s", seed, round, r)
			}
			if r > cluster.Oldest && r < cluster.Newest {
				between++
			}
		}
		if n := first[cluster.Newest]; n == 0 || n > 2 {
			t.Errorf("seed %d: the newest release is that of round %d", seed, n)
		}
		if n := first[cluster.Oldest]; n == 0 || n > 4 {
			t.Errorf("seed %d: the oldest release is that of round %d", seed, n)
		}
		if between == 0 {
			t.Errorf("seed %d: no round has a release between", seed)
		}
	}
	c, err := newCalendar("1.34", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := c.next(); r.String() != "1.34" {
			t.Errorf("release %s, want 1.34", r)
		}
	}
}
