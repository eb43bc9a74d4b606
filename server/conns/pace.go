package conns

import (
	"errors"
	"time"
)

// What a client may send besides requests and their bodies: pings, settings, updates
// of windows, resets, priorities, continuations, frames of no type that is known, data
// in crumbs. So many at once, and so many a second; more for what it is sent, as every
// part of that may be answered with updates. Who sends more waits.
const (
	burstFrames  = 20_000
	frameRate    = 2_000 // a second
	crumb        = 256   // bytes of data
	bytesOfFrame = 256   // sent to a client let it send one more
	paceStep     = 20 * time.Millisecond
)

// ignoredMax is how many requests a client may begin on a connection that has been
// told to go away. They are neither served nor answered.
const ignoredMax = 1000

// errFlood: the client does not do as HTTP/2 says, and sends on.
var errFlood = errors.New("the client begins requests that the connection does not take")

// pace bounds how fast a client sends frames that ask for nothing.
type pace struct {
	spent int64
	since time.Time           // when spent was last made less
	sleep func(time.Duration) // nil: time.Sleep
}

// frame is told of each.
func (p *pace) frame(h *head, w *windows) {
	switch kind := h.kind(); {
	case kind == headersFrame && !w.left.Load(), kind == dataFrame && h.length() >= crumb:
		return
	}
	if p.spent++; p.spent < burstFrames {
		return
	}
	for now := time.Now(); ; now = time.Now() {
		p.spent = max(0, p.spent-w.earned.Swap(0)-int64(now.Sub(p.since)*frameRate/time.Second))
		if p.since = now; p.spent < burstFrames {
			return
		}
		if p.sleep == nil {
			time.Sleep(paceStep)
		} else {
			p.sleep(paceStep)
		}
	}
}
