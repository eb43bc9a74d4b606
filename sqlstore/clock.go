package sqlstore

import "time"

// Wall clocks are set: by hand, by a daemon, or by a machine that boots without one. Deletion because of a
// wrong clock cannot be undone, so age is measured by elapsed time, which cannot be set, as far as this
// server was running.

// horizon finds the revision up to which history is older than the retention. The age of rows that were written
// while it runs is measured by elapsed time; that of older rows by their time of writing and the wall clock at the
// start, or an earlier time if that clock may be ahead (limit). A row from a time when the clock was set back looks
// older than it is: it counts as written after the rows before it.
type horizon struct {
	retention time.Duration
	wall      time.Time     // at the start
	now       time.Time     // at the start, for the ages of earlier rows; not after wall
	start     time.Duration // by elapsed time
	head      int64         // at the start
	samples   []headSample  // heads since, oldest first
	newest    time.Time     // at which a row from before the start was certainly written
}

type headSample struct {
	at   time.Duration
	head int64
}

// limit makes the ages of rows from before the start refer to t, if that is earlier than the clock at the start by more
// than inStep.
func (h *horizon) limit(t time.Time) {
	if t = t.Add(inStep); t.Before(h.now) {
		h.now = t
	}
}

// before returns the latest time of writing of old history that may be deleted.
func (h *horizon) before(elapsed time.Duration) time.Time {
	return h.now.Add(elapsed - h.start - h.retention)
}

// reach takes the present head and the newest revision written by before, and returns the revision to compact to.
func (h *horizon) reach(elapsed time.Duration, head, old int64) int64 {
	to := min(old, h.head)
	h.samples = append(h.samples, headSample{elapsed, head})
	past := 0
	for past < len(h.samples) && h.samples[past].at <= elapsed-h.retention {
		to = max(to, h.samples[past].head)
		past++
	}
	if past > 1 { // only the newest of those that are old enough matters
		h.samples = append(h.samples[:0], h.samples[past-1:]...)
	}
	return to
}

// expiryClock is the wall clock for expiry. If the system's clock is set back, it follows at once: objects live
// longer. If it is set ahead, it follows after an hour, when everything that should live for an hour has done so;
// until then it continues at its own pace. A clock that was set back, and is right again by the time that has passed since, is
// followed at once.
type expiryClock struct {
	wall    func() time.Time
	elapsed func() time.Duration
	last    time.Time     // the wall clock as trusted
	at      time.Duration // when
	ahead   bool
	since   time.Duration // when it was first seen ahead
	right   time.Time     // what last would be if the clock had not been set back
}

const (
	doubtFor = time.Hour
	inStep   = 10 * time.Second // smaller differences are ignored
)

// read reads both clocks at one moment: time between two readings, as of a suspended process, would look like a
// clock that was set.
func (c *expiryClock) read() (wall time.Time, elapsed time.Duration) {
	for before := c.elapsed(); ; before = elapsed {
		wall, elapsed = c.wall().Round(0), c.elapsed() // without the monotonic reading, by which times would be compared
		if elapsed-before < inStep {
			return wall, elapsed
		}
	}
}

func (c *expiryClock) now() time.Time {
	wall, elapsed := c.read()
	passed := elapsed - c.at
	steady, right := c.last.Add(passed), c.right.Add(passed)
	switch {
	case c.last.IsZero(), c.ahead && elapsed-c.since >= doubtFor, wall.Sub(right).Abs() <= inStep:
		c.last, c.right, c.at, c.ahead = wall, wall, elapsed, false
		return wall
	case !wall.After(steady.Add(inStep)):
		c.last, c.right, c.at, c.ahead = wall, right, elapsed, false
		return wall
	case !c.ahead:
		c.ahead, c.since = true, elapsed
	}
	return steady
}
