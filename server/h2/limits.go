package h2

import (
	"errors"
	"time"

	"golang.org/x/net/http2"
)

// Frames that cost the server work though they carry neither a request nor a body worth of data: PING,
// SETTINGS, WINDOW_UPDATE, RST_STREAM, PRIORITY, CONTINUATION, unknown types, small DATA frames, and
// frames that make the server reset a stream. A client may send a burst of them, frameRate a second,
// and more in return for what it was sent, which it acknowledges with WINDOW_UPDATE. Beyond that the
// server reads the connection more slowly.
const (
	burstFrames  = 20_000
	frameRate    = 2_000 // a second
	smallData    = 256   // bytes of a DATA frame below which it counts
	bytesOfFrame = 256   // bytes sent to the client that allow it one frame more
	limitStep    = 20 * time.Millisecond
)

const (
	frameMax      = 16 << 10  // bytes of a frame, in both directions
	windowMax     = 1<<31 - 1 // bytes (RFC 9113, 6.9.1)
	defaultWindow = 65535     // bytes of both windows before they are changed (RFC 9113, 6.9.2)
	bodyWindow    = 256 << 10 // bytes of a body that are buffered for its handler
	bufferBody    = 64 << 10  // bytes of a body that is received whole before its handler is called
	bufferBodies  = 256 << 10 // bytes of all such bodies on a connection, as announced
	bufferHeaders = 8 << 10   // bytes of the headers of such a request, which is not authenticated yet
	updateAfter   = 64 << 10  // bytes of bodies after which the connection's window is renewed

	settingsMax    = 100    // settings in a frame
	fragmentsMax   = 320    // frames of a header block: 1 MB in quarters of full frames, and some more
	ignoredMax     = 1000   // requests that a client sends after GOAWAY
	unreadMax      = 10_000 // replies to SETTINGS, PING and the like that the client does not read
	prefaceTimeout = 10 * time.Second
	patience       = 30 * time.Second // without progress: of an announced body, of a response that is not read; in all: of a write of a watch
	parkAfter      = time.Second
)

// errFlood: the client makes the server queue replies that it does not read, or ignores GOAWAY.
var errFlood = errors.New("the client sends too much, and does not read the replies")

// frameLimiter bounds how fast a client sends such frames.
type frameLimiter struct {
	spent int64
	since time.Time // when spent was last reduced
}

// frame counts a frame, and sleeps while the client has sent too many.
func (l *frameLimiter) frame(h http2.FrameHeader, c *conn) {
	switch {
	case h.Type == http2.FrameHeaders && !c.refusing.Load(), h.Type == http2.FrameData && h.Length >= smallData:
		return
	}
	l.count(c)
}

// count counts a frame of any type, or a stream reset.
func (l *frameLimiter) count(c *conn) {
	if l.spent++; l.spent < burstFrames {
		return
	}
	for now := time.Now(); ; now = time.Now() {
		l.spent = max(0, l.spent-c.frameCredit.Swap(0)-int64(now.Sub(l.since)/(time.Second/frameRate)))
		if l.since = now; l.spent < burstFrames || c.closing.Load() {
			return
		}
		time.Sleep(limitStep)
	}
}

// tooLongKey marks a request whose headers exceed the limit.
const tooLongKey = ":too-long"
