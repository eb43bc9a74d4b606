package follow

import "time"

// steady is a wall clock that continues at its own pace when it is set ahead: deletion because of a clock
// cannot be undone.
type steady struct {
	wall   time.Time // at the first look, without a monotonic reading
	first  time.Time
	pauses []pause // of the folder before this follower, in their order
}

// pause is a step of the time in the log of a folder, ahead or back: no follower ran, it could not write, or the clock was set.
type pause struct {
	run    int
	before int64 // the revision that comes next in the log; 0: the run begins after the pause
	length time.Duration
}

// longestStep is the longest time between two frames that is no pause: a follower writes one each second.
const longestStep = 2 * time.Minute

// isPause reports whether a step of the time in a log is a pause. The log continues in a new segment then, so that the beginnings and
// ends of segments show all pauses.
func isPause(step time.Duration) bool { return step.Abs() > longestStep }

// begin reads the pauses of a folder when it is called first. Pauses do not count toward the age of the bases before them, whichever
// follower met them.
func (c *steady) begin(dir string) error {
	if !c.first.IsZero() {
		return nil
	}
	l, err := List(dir)
	if err != nil {
		return err
	}
	now, last, run, next := c.now(), time.Time{}, 0, int64(0)
	add := func(run int, before int64, at time.Time) {
		if step := at.Sub(last); !last.IsZero() && isPause(step) {
			c.pauses = append(c.pauses, pause{run, before, step})
		}
	}
	for _, r := range l.Runs {
		for i := range r.Segments {
			s := &r.Segments[i]
			if s.Until.IsZero() { // it cannot be read
				continue
			}
			before := s.First
			if r.Number != run {
				before = 0
			}
			add(r.Number, before, s.Began)
			last, run, next = s.Until, r.Number, s.Last+1
		}
	}
	add(run, next, now)
	return nil
}

// paused returns for how long no follower wrote since a base was taken. A base of the revision before a pause may be older or newer
// than the pause: it counts as what makes the base younger.
func (c *steady) paused(b *Base) time.Duration {
	var sum time.Duration
	for _, p := range c.pauses {
		after := p.run > b.Run || p.run == b.Run && (b.Revision < p.before-1 || b.Revision == p.before-1 && p.length > 0)
		if after {
			sum += p.length
		}
	}
	return max(0, sum)
}

// age returns how long ago a base was taken, without pauses.
func (c *steady) age(b *Base) time.Duration { return c.now().Sub(b.Taken) - c.paused(b) }

func (c *steady) now() time.Time {
	now := time.Now()
	if c.first.IsZero() {
		c.first, c.wall = now, now.Round(0)
	}
	if went := c.wall.Add(now.Sub(c.first)); went.Before(now.Round(0)) {
		return went
	}
	return now.Round(0)
}
