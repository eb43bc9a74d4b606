//go:build unix

package cluster_test

import (
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// TestMachine: the times in the log of a server whose clock is set are taken for those of the machine.
func TestMachine(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	settings := []cluster.Setting{{at(10), 5 * time.Hour}, {at(20), -3 * time.Hour}, {at(30), 0}, {at(100), time.Hour}, {at(110), 0}}
	for _, c := range []struct {
		machine int
		ahead   time.Duration
	}{{0, 0}, {9, 0}, {12, 5 * time.Hour}, {19, 5 * time.Hour}, {20, -3 * time.Hour}, {29, -3 * time.Hour}, {31, 0}, {99, 0}, {105, time.Hour}, {500, 0}} {
		if got, want := cluster.Machine(settings, at(c.machine).Add(c.ahead)), at(c.machine); !got.Equal(want) {
			t.Errorf("%d s, with a clock %s ahead: %s, want %s", c.machine, c.ahead, got, want)
		}
	}
}
