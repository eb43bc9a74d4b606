package conns

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"
)

const (
	frameHead = 9    // bytes: a length of three, a type, flags, a stream
	dataFrame = 0    // the type
	endStream = 1    // a flag of data frames
	bulkFrame = 8000 // bytes; from here on a data frame is one of many
)

// Frames is a connection above TLS, for package http2 to write to. It joins data
// frames, so that they fill TLS records.
type Frames struct {
	*tls.Conn
	hold hold

	armed time.Time // when the deadline was set; guarded by hold

	left  int // bytes of the frame under way that are still to come
	head  [frameHead]byte
	have  int // bytes of head
	more  bool
	whole atomic.Int32 // answers under way whose end will come soon

	parties atomic.Int32  // that were called together and have not come yet
	came    chan struct{} // signalled when the last of them has
}

// NewFrames puts a connection below package http2.
func NewFrames(c *tls.Conn) *Frames {
	f := &Frames{Conn: c, came: make(chan struct{}, 1)}
	f.hold.out, f.hold.limit = f.put, holdFor
	if r, ok := c.NetConn().(*records); ok {
		f.hold.limit = r.hold.limit
	}
	return f
}

// patience is how long, at least, a client may take nothing of what is sent before
// its connection is cut. Deadlines of streams do not help then: nothing gets through.
const patience = 30 * time.Second

// put writes what was held. It has a deadline that is set now and then: setting one
// costs as much as a small write.
func (f *Frames) put(p []byte) (int, error) {
	if now := time.Now(); now.Sub(f.armed) > patience/3 {
		_ = f.Conn.SetWriteDeadline(now.Add(patience * 4 / 3)) // a closed connection says so below
		f.armed = now
	}
	return f.Conn.Write(p)
}

var _ net.Conn = (*Frames)(nil)

// Write takes parts of frames, or several frames. Nobody else writes meanwhile.
func (f *Frames) Write(p []byte) (int, error) {
	if f.parties.Load() > 0 {
		f.gather()
	}
	f.follow(p)
	return f.hold.pass(p, f.left > 0 || f.have > 0 || f.more || f.parties.Load() > 0)
}

// gather waits until everybody who was called has come, but not for long. Package
// http2 writes in a goroutine of its own, and queues meanwhile what others bring.
func (f *Frames) gather() {
	timer := time.NewTimer(f.hold.limit)
	defer timer.Stop()
	for f.parties.Load() > 0 {
		select {
		case <-f.came:
		case <-timer.C:
			return
		}
	}
}

// Call implements Joiner.
func (f *Frames) Call() { f.parties.Add(1) }

// Come implements Joiner.
func (f *Frames) Come() {
	if f.parties.Add(-1) == 0 {
		select {
		case f.came <- struct{}{}:
		default:
		}
	}
}

// follow finds out where in which frame p ends.
func (f *Frames) follow(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, len(p))
			f.left -= n
			p = p[n:]
			continue
		}
		n := copy(f.head[f.have:], p)
		f.have += n
		p = p[n:]
		if f.have == frameHead {
			h := &f.head
			f.have, f.left = 0, int(h[0])<<16|int(h[1])<<8|int(h[2])
			f.more = h[3] == dataFrame && h[4]&endStream == 0 && (f.left >= bulkFrame || f.whole.Load() > 0)
		}
	}
}

// Whole implements Joiner.
func (f *Frames) Whole() { f.whole.Add(1) }

// Done implements Joiner. The frame that ends the answer is still to come.
func (f *Frames) Done() { f.whole.Add(-1) }

// With is the context of the requests of a connection.
func With(ctx context.Context, f *Frames) context.Context {
	return context.WithValue(ctx, joinerKey{}, Joiner(f))
}
