//go:build unix

package cluster

import (
	"context"
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

// startTime is longer than a process of Go takes until it can read its clock.
const startTime = 2 * time.Second

// StartServerAt is StartServer with a clock that is ahead of that of the machine, or back, as soon as the process reads it. unset is
// why the clock is right nevertheless.
func (c *Cluster) StartServerAt(ctx context.Context, i int, ahead time.Duration) (unset, err error) {
	var set Setting
	err = c.start(ctx, i, func(pid int) {
		for deadline := time.Now().Add(startTime); ; {
			var clock *wallclock.Clock
			if clock, unset = wallclock.Open(pid); unset == nil {
				set, unset = Setting{time.Now(), ahead}, clock.Set(ahead)
				_ = clock.Close() // the write is complete
				return
			}
			if time.Now().After(deadline) || errors.Is(unset, wallclock.ErrUnknown) {
				return
			}
		}
	})
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if unset == nil {
		n.clock = []Setting{set}
	}
	return unset, err
}

// Machine returns the machine's time when a server wrote a time to its log. Settings of its clock are by time.
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
