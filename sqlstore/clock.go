package sqlstore

import "time"

// Wall clocks are set: by hand, by a daemon that finds them wrong, by a machine that
// boots without one. What is deleted because of a clock is gone, so age is measured
// by a clock that cannot be set wherever this server has been there to measure.

// horizon finds the revision up to which history is older than the retention. What
// was written while it watched is judged by elapsed time alone; what was there
// before, by its time of writing and the wall clock as it was at the start.
type horizon struct {
	retention time.Duration
	wall      time.Time     // at the start
	start     time.Duration // by elapsed time
	head      int64         // at the start
	seen      []sighting    // heads since, oldest first
}

type sighting struct {
	at   time.Duration
	head int64
}

func newHorizon(retention time.Duration, wall time.Time, elapsed time.Duration, head int64) *horizon {
	return &horizon{retention: retention, wall: wall, start: elapsed, head: head}
}

// before is the time of writing up to which old history may go.
func (h *horizon) before(elapsed time.Duration) time.Time {
	return h.wall.Add(elapsed - h.start - h.retention)
}

// reach takes the head as it is now and the newest revision written by before, and
// returns the revision to compact to.
func (h *horizon) reach(elapsed time.Duration, head, old int64) int64 {
	to := min(old, h.head)
	h.seen = append(h.seen, sighting{elapsed, head})
	past := 0
	for past < len(h.seen) && h.seen[past].at <= elapsed-h.retention {
		to = max(to, h.seen[past].head)
		past++
	}
	if past > 1 { // the newest of those that are old enough says it all
		h.seen = append(h.seen[:0], h.seen[past-1:]...)
	}
	return to
}

// cautious is a wall clock for what expires. Set back, it is believed at once: things
// live longer. Set ahead, it is believed after an hour, by when all that was to live
// for an hour has done so; until then the clock goes on as it went.
type cautious struct {
	wall    func() time.Time
	elapsed func() time.Duration
	last    time.Time     // believed
	at      time.Duration // when
	ahead   bool
	since   time.Duration // when it was first seen ahead
}

const (
	doubtFor = time.Hour
	inStep   = 10 * time.Second // differences that no caution is worth
)

// look reads both clocks as of one moment: time that passes between two readings, as
// for a process that is put to sleep, would show as a clock that is set.
func (c *cautious) look() (wall time.Time, elapsed time.Duration) {
	for before := c.elapsed(); ; before = elapsed {
		wall, elapsed = c.wall(), c.elapsed()
		if elapsed-before < inStep {
			return wall, elapsed
		}
	}
}

func (c *cautious) now() time.Time {
	wall, elapsed := c.look()
	steady := c.last.Add(elapsed - c.at)
	switch {
	case c.last.IsZero(), !wall.After(steady.Add(inStep)), c.ahead && elapsed-c.since >= doubtFor:
		c.last, c.at, c.ahead = wall, elapsed, false
		return wall
	case !c.ahead:
		c.ahead, c.since = true, elapsed
	}
	return steady
}
