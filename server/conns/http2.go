package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// HTTP2Conn is a connection above TLS, for package http2 to read and write. It joins data
// frames, so that they fill TLS records, and lets answers put their own between them.
type HTTP2Conn struct {
	*tls.Conn
	order   uint64
	sluice  *sluice
	windows *windows
	beside  beside
	in      incoming
	hold    hold
	waits   bool // what the client does not take; guarded by hold, as all that follow

	outgoing
	kept []byte // a frame that has only begun, and may be a token

	whole   atomic.Int32  // answers under way whose end will come soon
	parties atomic.Int32  // that were called together and have not come yet
	came    chan struct{} // signalled when the last of them has
}

// order numbers connections.
var order atomic.Uint64

// NewHTTP2Conn puts a connection, one of a Listener, below package http2, which serves so
// many streams of it at once.
func NewHTTP2Conn(c *tls.Conn, streams uint32) *HTTP2Conn {
	below := c.NetConn().(*records)
	f := &HTTP2Conn{Conn: c, order: order.Add(1), sluice: newSluice(below.Conn, true), came: make(chan struct{}, 1)}
	f.hold.out, f.hold.limit, f.hold.after = f.put, below.hold.limit, func() { f.sendBeside(true) }
	f.hold.err = below.over(f.sluice)
	f.windows = newWindows(streams, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) }) // it has passed: Read wakes up
	f.in.left = len(http2.ClientPreface)
	return f
}

// put seals and writes what was held.
func (f *HTTP2Conn) put(p []byte) (int, error) {
	f.sluice.gather()
	n, err := f.Conn.Write(p)
	if late := f.sluice.release(f.waits); err == nil {
		err = late
	}
	return n, err
}

var _ net.Conn = (*HTTP2Conn)(nil)

// Read gives package http2 what the client sends.
func (f *HTTP2Conn) Read(p []byte) (int, error) {
	for {
		n, err := f.in.read(f.Conn, f.windows, p)
		if n > 0 {
			return n, nil // an error comes again
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		// Nobody else sets deadlines. Whoever does so now does it for nothing: what it
		// is about will be seen by the next look.
		if err := f.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
}

// Write takes parts of frames, or several frames. Package http2 does not call it twice
// at once.
func (f *HTTP2Conn) Write(p []byte) (int, error) {
	if f.parties.Load() > 0 {
		f.gather()
	}
	f.hold.mu.Lock()
	f.waits = true
	err := f.write(p)
	f.hold.mu.Unlock()
	if err != nil {
		return 0, err
	}
	f.sendBeside(true)
	return len(p), nil
}

// write sends frames, and others at the first place between them. f.hold.mu is held.
func (f *HTTP2Conn) write(p []byte) error {
	if f.windows.searches() || len(f.kept) > 0 {
		p = f.search(p)
	}
	f.windows.earned.Add(2 + int64(len(p)/bytesOfFrame))
	between := f.follow(p, f.windows)
	if f.beside.size.Load() > 0 && between >= 0 {
		if _, err := f.hold.add(p[:between], true); err != nil {
			return err
		}
		if err := f.addBeside(); err != nil {
			return err
		}
		p = p[between:]
	}
	if len(p) == 0 {
		return f.hold.err
	}
	_, err := f.hold.add(p, !f.isBetween() || f.more || f.parties.Load() > 0)
	return err
}

// addBeside sends the frames that wait to go out between others. f.hold.mu is held.
func (f *HTTP2Conn) addBeside() error {
	p := f.beside.take()
	if p == nil {
		return nil
	}
	defer done(p)
	f.windows.earned.Add(2 + int64(len(*p)/bytesOfFrame))
	_, err := f.hold.add(*p, false)
	return err
}

// sendBeside sends the frames that wait to go out between others, unless somebody else
// is about to.
func (f *HTTP2Conn) sendBeside(waits bool) {
	const enough = 3 * record // to go out while others are still made
	for size := f.beside.size.Load(); size > 0; size = f.beside.size.Load() {
		if f.parties.Load() > 0 && size < enough || !f.hold.mu.TryLock() {
			return // the last of the parties calls, or who holds the lock, when it is free
		}
		f.waits = waits
		between := f.isBetween()
		if between {
			_ = f.addBeside() // the next write returns it
		}
		f.hold.mu.Unlock()
		if !between {
			return // who ends the frame goes on with these
		}
	}
}

// sendAll sends the frames that wait to go out between others, and waits until the
// client has taken all that was sent.
func (f *HTTP2Conn) sendAll() error {
	f.hold.mu.Lock()
	f.waits = true
	err := f.hold.err
	if err == nil && f.isBetween() {
		err = f.addBeside()
	}
	f.hold.mu.Unlock()
	if err != nil {
		return err
	}
	f.sendBeside(true)
	return f.sluice.settle()
}

// gather waits until everybody who was called has come, but not for long. Package
// http2 writes in a goroutine of its own, and queues meanwhile what others bring.
func (f *HTTP2Conn) gather() {
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

// AddWriter implements Conn.
func (f *HTTP2Conn) AddWriter() { f.parties.Add(1) }

// RemoveWriter implements Conn.
func (f *HTTP2Conn) RemoveWriter() {
	if f.parties.Add(-1) == 0 {
		select {
		case f.came <- struct{}{}:
		default:
		}
		f.sendBeside(false)
	}
}

// MayBlock implements Conn.
func (f *HTTP2Conn) MayBlock(n int64) bool { return f.windows.mayBlock(n) || f.sluice.stuck() }

// Order implements Conn.
func (f *HTTP2Conn) ID() uint64 { return f.order }

// Whole implements Conn.
func (f *HTTP2Conn) Cork() { f.whole.Add(1) }

// Done implements Conn. The frame that ends the answer is still to come.
func (f *HTTP2Conn) Uncork() { f.whole.Add(-1) }

// With is the context of the requests of a connection.
func WithConn(ctx context.Context, f *HTTP2Conn) context.Context {
	return context.WithValue(ctx, connKey{}, Conn(f))
}
