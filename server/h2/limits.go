package h2

import (
	"errors"
	"time"

	"golang.org/x/net/http2"
)

// What a client may send besides requests and their bodies: pings, settings, window
// updates, resets, priorities, continuations, frames of unknown types, data in crumbs, and
// whatever has one of its streams reset. There is an allowance for so many at once and so many a second, and for more
// the more of answers the client is sent, because it answers what it is sent with window updates. A
// client that sends more is read slowly.
const (
	burstFrames  = 20_000
	frameRate    = 2_000 // a second
	crumb        = 256   // bytes of data in a frame that counts
	bytesOfFrame = 256   // sent to a client let it send one frame more
	limitStep    = 20 * time.Millisecond
)

const (
	frameMax     = 16 << 10  // bytes of a frame, in both directions
	windowMax    = 1<<31 - 1 // bytes (RFC 9113, 6.9.1)
	firstWindow  = 65535     // bytes that each end may send before it hears of more
	bodyWindow   = 256 << 10 // bytes of a body that are kept for a handler that does not read it
	wholeBody    = 64 << 10  // bytes of a body that a handler is not called before
	wholeBodies  = 256 << 10 // bytes of all such bodies on a connection, as they were announced
	wholeHeaders = 8 << 10   // bytes of the headers of such a request, which nobody has authenticated yet
	giveBack     = 64 << 10  // bytes of bodies after which the client is given back the connection's window

	settingsMax  = 100    // settings in a frame
	fragmentsMax = 320    // frames of a block of headers: those of 1 MB in quarters of full frames, and some more
	ignoredMax   = 1000   // requests that a client begins after it was told to go away
	unreadMax    = 10_000 // answers to settings, pings and the like that the client does not take
	greetingTime = 10 * time.Second
	patience     = 30 * time.Second // without progress: a body that was announced, an answer that is not taken
	parkAfter    = time.Second
)

// errFlood: the client sends what nobody can answer any more.
var errFlood = errors.New("the client sends more than it may, and takes no answers")

// frameLimiter bounds how fast a client sends frames that ask for nothing.
type frameLimiter struct {
	spent int64
	since time.Time           // when spent was last made less
	sleep func(time.Duration) // nil: time.Sleep
}

// frame is told of each frame, and sleeps where there were too many.
func (l *frameLimiter) frame(h http2.FrameHeader, c *conn) {
	switch {
	case h.Type == http2.FrameHeaders && !c.ignores.Load(), h.Type == http2.FrameData && h.Length >= crumb:
		return
	}
	l.count(c)
}

// count is frame for what always counts: a frame, or a stream that is reset because of one.
func (l *frameLimiter) count(c *conn) {
	if l.spent++; l.spent < burstFrames {
		return
	}
	for now := time.Now(); ; now = time.Now() {
		l.spent = max(0, l.spent-c.allowance.Swap(0)-int64(now.Sub(l.since)/(time.Second/frameRate)))
		if l.since = now; l.spent < burstFrames || c.ending.Load() {
			return
		}
		if l.sleep == nil {
			time.Sleep(limitStep)
		} else {
			l.sleep(limitStep)
		}
	}
}
