package watches

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// A watch is woken one tick late at most. Nearly all are due within one turn of the wheel; later ones stay for
// another turn.
const (
	wheelTick  = 100 * time.Millisecond
	wheelSlots = 1024
	wheelBatch = 128 // watches after which the wheel yields to other goroutines
)

// timerWheel wakes watches whose handlers have returned, with one timer for all. Its zero value is ready, and its timer runs only
// while there are watches. The timer's goroutine never waits.
type timerWheel struct {
	mu    sync.Mutex
	began time.Time // when the first watch was set
	seen  int64     // the tick up to which watches were woken
	count int
	timer *time.Timer
	slots [wheelSlots]*stream // by tick modulo these, as lists
}

// wheelEntry is a watch's place in the wheel.
type wheelEntry struct {
	at         int64 // the tick; 0: none
	prev, next *stream
}

// set wakes a watch once, at a time.
func (c *timerWheel) set(w *stream, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = time.Now()
	}
	step := max(int64((at.Sub(c.began)+wheelTick-1)/wheelTick), c.seen+1)
	place := &c.slots[step%wheelSlots]
	w.wheelEntry = wheelEntry{at: step, next: *place}
	if w.wheelEntry.next != nil {
		w.wheelEntry.next.wheelEntry.prev = w
	}
	*place = w
	c.count++
	c.arm()
}

// forget removes a watch from the wheel, if it is there.
func (c *timerWheel) forget(w *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.wheelEntry.at != 0 {
		c.unlink(w)
	}
}

func (c *timerWheel) unlink(w *stream) {
	if a := &w.wheelEntry; a.prev != nil {
		a.prev.wheelEntry.next = a.next
	} else {
		c.slots[a.at%wheelSlots] = a.next
	}
	if a := &w.wheelEntry; a.next != nil {
		a.next.wheelEntry.prev = a.prev
	}
	w.wheelEntry = wheelEntry{}
	if c.count--; c.count == 0 {
		c.timer.Stop()
	}
}

// arm sets the timer to the next tick that has a watch. The caller holds c.mu.
func (c *timerWheel) arm() {
	if c.count == 0 {
		return
	}
	step := c.seen + 1
	for c.slots[step%wheelSlots] == nil {
		step++
	}
	in := time.Until(c.began.Add(time.Duration(step) * wheelTick))
	if c.timer == nil {
		c.timer = time.AfterFunc(in, c.fire)
	} else {
		c.timer.Reset(in)
	}
}

// fire wakes the watches that are due. Watches of one connection follow one another, so that their bookmarks are sent in
// one write.
func (c *timerWheel) fire() {
	due := c.take()
	slices.SortFunc(due, func(a, b *stream) int { return cmp.Compare(a.order(), b.order()) })
	for len(due) > 0 {
		n := fireConnection(due[:min(wheelBatch, len(due))])
		if due = due[n:]; len(due) > 0 {
			runtime.Gosched()
		}
	}
}

// take removes the watches that are due from the wheel.
func (c *timerWheel) take() (due []*stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := int64(time.Since(c.began) / wheelTick)
	for step := max(c.seen, now-wheelSlots) + 1; step <= now; step++ {
		for w := c.slots[step%wheelSlots]; w != nil; {
			next := w.wheelEntry.next
			if w.wheelEntry.at <= now {
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
		due[n].wheelFired.Store(true)
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

// nextTimer returns the time of the next bookmark, or of the end. Bookmarks of one connection are due at the same times,
// so that one write sends them all: the first one is up to half a minute early.
func (w *stream) nextTimer(now time.Time) time.Time {
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
