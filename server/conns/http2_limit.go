package conns

import (
	"errors"
	"time"
)

// What a client may send besides requests and their bodies: pings, settings, window
// updates, resets, priorities, continuations, frames of unknown types, and data in
// crumbs. There is an allowance for so many at once and so many a second, and for more
// the more the client is sent, because it answers what it is sent with window updates. A
// client that sends more is read slowly.
const (
	burstFrames  = 20_000
	frameRate    = 2_000 // a second
	crumb        = 256   // bytes of data in a frame that counts
	bytesOfFrame = 256   // sent to a client let it send one frame more
	limitStep    = 20 * time.Millisecond
)

// ignoredMax is how many requests a client may begin on a connection that has been told
// to go away. They are neither served nor answered.
const ignoredMax = 1000

// errFlood: the client begins streams in a way that HTTP/2 does not allow.
var errFlood = errors.New("the client begins requests that the connection does not take")

// frameLimiter bounds how fast a client sends frames that ask for nothing.
type frameLimiter struct {
	spent int64
	since time.Time           // when spent was last made less
	sleep func(time.Duration) // nil: time.Sleep
}

// frame is told of each frame, and sleeps where there were too many.
func (l *frameLimiter) frame(h *head, f *flowControl) {
	switch kind := h.kind(); {
	case kind == headersFrame && !f.goneAway.Load(), kind == dataFrame && h.length() >= crumb:
		return
	}
	if l.spent++; l.spent < burstFrames {
		return
	}
	for now := time.Now(); ; now = time.Now() {
		l.spent = max(0, l.spent-f.allowance.Swap(0)-int64(now.Sub(l.since)*frameRate/time.Second))
		if l.since = now; l.spent < burstFrames {
			return
		}
		if l.sleep == nil {
			time.Sleep(limitStep)
		} else {
			l.sleep(limitStep)
		}
	}
}
