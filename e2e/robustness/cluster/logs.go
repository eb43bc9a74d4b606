//go:build unix

package cluster

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Log returns the output of the last processes of a server.
func (c *Cluster) Log(i int) string {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	logs := slices.Clone(n.logs)
	if n.up {
		logs = append(logs, n.server.Log())
	}
	return strings.Join(logs, "\n--- next process\n")
}

// mostLogs bounds the logs that are kept of the processes of a server.
const mostLogs = 40

// ended is a process that has ended.
type ended struct {
	log   string
	at    time.Time
	clock []Setting
}

// keep keeps the log of a process that has ended.
func (n *node) keep(log string) {
	n.ended = append(n.ended, ended{log, time.Now(), n.clock})
	if n.logs = append(n.logs, log); len(n.logs) > mostLogs {
		n.logs = slices.Delete(n.logs, 0, 1)
	}
}

// Reloads returns when servers loaded all objects anew, by their logs, at least since the last call.
func (c *Cluster) Reloads(since func(time.Time) time.Duration) (all []*history.Reload) {
	logged := func(clock []Setting) func(time.Time) time.Duration {
		return func(t time.Time) time.Duration { return since(Machine(clock, t)) }
	}
	for i, n := range c.nodes {
		n.mu.Lock()
		for _, p := range n.ended {
			all = append(all, FindReloads(p.log, i, logged(p.clock), since(p.at))...)
		}
		n.ended = nil
		if n.up {
			all = append(all, FindReloads(n.server.Log(), i, logged(n.clock), math.MaxInt64)...)
		}
		n.mu.Unlock()
	}
	return all
}

// The log lines at the beginning and at the end of a reload (sqlstore/feed.go).
const (
	reloadBegins = "all objects are loaded anew"
	reloadEnds   = "all objects were loaded anew"
)

// FindReloads finds reloads in the log of a process. One that is not finished ends when the process does.
func FindReloads(log string, server int, since func(time.Time) time.Duration, end time.Duration) (all []*history.Reload) {
	for line := range strings.Lines(log) {
		begins, ends := strings.Contains(line, reloadBegins), strings.Contains(line, reloadEnds)
		if !begins && !ends {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.Parse(time.RFC3339, text)
		switch {
		case err != nil: // not a line of the log
		case begins:
			all = append(all, &history.Reload{Server: server, Begin: since(at), End: end})
		case len(all) > 0:
			all[len(all)-1].End = since(at)
		}
	}
	return all
}
