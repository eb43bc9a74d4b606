package watches

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// The clock is late by one step at most. Nearly all alarms are due within one round of its dial; later ones stay for
// another round.
const (
	clockStep  = 100 * time.Millisecond
	clockSteps = 1024
	ringStep   = 128 // watches after which the clock yields to other goroutines
)

// clock rings watches whose handlers have returned, with one timer for all. Its zero value is ready, and its timer runs only
// while there are watches. The timer's goroutine never waits.
type clock struct {
	mu    sync.Mutex
	began time.Time // of the first alarm that was set
	seen  int64     // the step up to which it has rung
	count int
	timer *time.Timer
	dial  [clockSteps]*stream // of each step modulo these, as lists
}

// alarm is a watch's place on the dial.
type alarm struct {
	at         int64 // the step; 0: it has none
	prev, next *stream
}

// set makes the clock ring a watch once, at a time.
func (c *clock) set(w *stream, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = time.Now()
	}
	step := max(int64((at.Sub(c.began)+clockStep-1)/clockStep), c.seen+1)
	place := &c.dial[step%clockSteps]
	w.alarm = alarm{at: step, next: *place}
	if w.alarm.next != nil {
		w.alarm.next.alarm.prev = w
	}
	*place = w
	c.count++
	c.arm()
}

// forget takes a watch off the dial, if it is there.
func (c *clock) forget(w *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.alarm.at != 0 {
		c.unlink(w)
	}
}

func (c *clock) unlink(w *stream) {
	if a := &w.alarm; a.prev != nil {
		a.prev.alarm.next = a.next
	} else {
		c.dial[a.at%clockSteps] = a.next
	}
	if a := &w.alarm; a.next != nil {
		a.next.alarm.prev = a.prev
	}
	w.alarm = alarm{}
	if c.count--; c.count == 0 {
		c.timer.Stop()
	}
}

// arm sets the timer to the next step that has an alarm. The caller holds c.mu.
func (c *clock) arm() {
	if c.count == 0 {
		return
	}
	step := c.seen + 1
	for c.dial[step%clockSteps] == nil {
		step++
	}
	in := time.Until(c.began.Add(time.Duration(step) * clockStep))
	if c.timer == nil {
		c.timer = time.AfterFunc(in, c.fire)
	} else {
		c.timer.Reset(in)
	}
}

// fire wakes the watches that are due. Watches of one connection follow one another, so that their bookmarks are sent in
// one write.
func (c *clock) fire() {
	due := c.take()
	slices.SortFunc(due, func(a, b *stream) int { return cmp.Compare(a.order(), b.order()) })
	for len(due) > 0 {
		n := fireConnection(due[:min(ringStep, len(due))])
		if due = due[n:]; len(due) > 0 {
			runtime.Gosched()
		}
	}
}

// take removes the watches that are due from the dial.
func (c *clock) take() (due []*stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := int64(time.Since(c.began) / clockStep)
	for step := max(c.seen, now-clockSteps) + 1; step <= now; step++ {
		for w := c.dial[step%clockSteps]; w != nil; {
			next := w.alarm.next
			if w.alarm.at <= now {
				c.unlink(w)
				due = append(due, w)
			}
			w = next
		}
	}
	c.seen = max(c.seen, now)
	c.arm()
	return due
}

// fireConnection wakes the first watch and those of the same connection that follow it. It returns their number.
func fireConnection(due []*stream) (n int) {
	conn := due[0].conn
	if conn != nil {
		conn.AddWriter()
		defer conn.RemoveWriter()
	}
	for n < len(due) && (n == 0 || conn != nil && due[n].conn == conn) {
		due[n].alarmed.Store(true)
		due[n].Notify()
		n++
	}
	return n
}

// order is equal for watches of one connection of HTTP/2.
func (w *stream) order() uint64 {
	if w.conn == nil {
		return 0
	}
	return w.conn.ID()
}

// nextAlarm returns the time of the next bookmark, or of the end. Bookmarks of one connection are due at the same times,
// so that one write sends them all: the first one is up to half a minute early.
func (w *stream) nextAlarm(now time.Time) time.Time {
	at := now.Add(w.untilBookmark())
	if !w.bookmarks || w.conn == nil {
		return at
	}
	return together(w.conn, now, at)
}

// together returns the last time before at at which the bookmarks of a connection are due; at itself if there is none, or if
// it would be too early.
func together(conn wire.Conn, now, at time.Time) time.Time {
	const (
		spread = 0x9e3779b97f4a7c15 // spreads connections with consecutive IDs
		every  = bookmarkEvery / 2  // a bookmark is at most this early
	)
	phase := time.Duration(conn.ID() * spread % uint64(every))
	last := at.Add(-((time.Duration(at.UnixNano()) - phase) % every))
	if last.Sub(now) < every {
		return at
	}
	return last
}
