//go:build unix

package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/wallclock"
)

// Setting is a time at which the clock of a server was set.
type Setting struct {
	At    time.Time
	Ahead time.Duration // of the machine's clock; 0: it is right from then on
}

// SetClock sets the wall clock of a server that runs, and of nothing else, ahead of that of the machine, or back. It is right again
// when the server is started again.
func (c *Cluster) SetClock(i int, ahead time.Duration) error {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return errors.New("the server is down")
	}
	clock, err := wallclock.Open(n.server.Pid())
	if err != nil {
		return fmt.Errorf("the clock of server %d: %w", i, err)
	}
	defer clock.Close()
	n.clock = append(n.clock, Setting{time.Now(), ahead})
	return clock.Set(ahead)
}

// Machine is the machine's time when a server wrote a time to its log. Settings of its clock are by time.
func Machine(settings []Setting, logged time.Time) time.Time {
	const slack = time.Second // between a setting and its effect, as clocks are set by hours
	for i, s := range settings {
		at := logged.Add(-s.Ahead)
		if !at.Before(s.At.Add(-slack)) && (i+1 == len(settings) || !at.After(settings[i+1].At.Add(slack))) {
			return at
		}
	}
	return logged
}
