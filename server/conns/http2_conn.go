package conns

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// HTTP2Conn is a connection above TLS, for package http2 to read and write. It joins data
// frames, so that they fill TLS records, and lets streams put their own between them.
type HTTP2Conn struct {
	*tls.Conn
	id       uint64
	delivery *Delivery
	queue    *sendQueue  // below TLS
	flow     flowControl // of what the client takes
	frames   frameQueue  // that are to go out between those of package http2
	reader   frameReader
	parting  parting
	shorts   *shorts // nil: package http2 serves all requests

	outlivers outlivers
	rest      rest
	handlers  atomic.Int32 // of package http2 that run, but for one that stays for others

	coalescer coalescer
	waits     bool           // whoever writes waits for the client; guarded by coalescer.mu, as the next five
	tracker   frameTracker   // of what package http2 writes
	partial   []byte         // the beginning of a frame that may carry a token
	shown     []*http2Stream // whose tokens were found in what is being written
	session   *session       // whose frames are taken; nil: those of anybody, or of none where the connection rests
	unsaid    unsaid         // what is left out of its beginning

	reading sync.Mutex     // held by who reads
	readsOn sync.Once      // readOn was called
	reads   sync.WaitGroup // its goroutine
	failed  atomic.Bool    // package http2 has told the client what it did wrong, and takes nothing more
	lost    atomic.Bool    // nothing can be read any more

	greeted atomic.Bool   // package http2 has sent its settings, which come first
	writing atomic.Int32  // calls of Write under way
	corked  atomic.Int32  // answers under way that are written without a pause
	writers atomic.Int32  // that were added and not removed yet
	ready   chan struct{} // signalled when the last of them is removed
}

// usualStreams is how many streams package http2 serves at once unless it is told.
const usualStreams = 250

// lastID numbers connections.
var lastID atomic.Uint64

// ServeHTTP2 makes hs, whose Listener must be a Listener with TLS, speak HTTP/2 over
// HTTP2Conns, and serve short requests beside package http2.
func ServeHTTP2(hs *http.Server, h2 *http2.Server, d *Delivery, short Short) error {
	if err := http2.ConfigureServer(hs, h2); err != nil {
		return err
	}
	hs.TLSNextProto[http2.NextProtoTLS] = func(hs *http.Server, t *tls.Conn, h http.Handler) {
		ctx := context.Background()
		// This is how package net/http hands a connection's context over.
		if b, ok := h.(interface{ BaseContext() context.Context }); ok {
			ctx = b.BaseContext()
		}
		c := newHTTP2Conn(t, h2.MaxConcurrentStreams, d)
		if c == nil {
			h2.ServeConn(t, &http2.ServeConnOpts{Handler: roomy(h), BaseConfig: hs, Context: ctx})
			return
		}
		c.shorts = newShorts(ctx, c, short, h2, hs, h)
		c.reader.shorts = c.shorts
		defer c.queue.join() // the connection is closed by then
		defer c.reads.Wait()
		defer c.shorts.finish(c.readOn)
		defer c.outlivers.end()
		c.serveSessions(h2, &http2.ServeConnOpts{Handler: c.outliving(roomy(h)), BaseConfig: hs, Context: context.WithValue(ctx, connKey{}, Conn(c))})
	}
	return nil
}

// newHTTP2Conn puts a connection of a Listener below package http2, which serves at most
// so many of its streams at once. It is nil for any other connection.
func newHTTP2Conn(t *tls.Conn, streams uint32, d *Delivery) *HTTP2Conn {
	_, r := below(t)
	if r == nil {
		return nil
	}
	c := &HTTP2Conn{Conn: t, id: lastID.Add(1), delivery: d, queue: newSendQueue(r.Conn, true), ready: make(chan struct{}, 1)}
	c.coalescer.out, c.coalescer.limit, c.coalescer.expired = c.send, r.coalescer.limit, func() { c.sendQueued(true) }
	c.coalescer.err = r.useQueue(c.queue)
	c.flow.init(streams, d.Direct(), func() { _ = t.SetReadDeadline(time.Unix(1, 0)) }) // it has passed, so that Read returns
	c.outlivers.most = cmp.Or(int(streams), usualStreams)
	c.outlivers.conn = c
	c.reader.left, c.reader.parting, c.reader.rest = len(http2.ClientPreface), &c.parting, &c.rest
	return c
}

// send encrypts and writes what was collected.
func (c *HTTP2Conn) send(p []byte) (int, error) {
	c.queue.gather()
	n, err := c.Conn.Write(p)
	if late := c.queue.release(c.waits); err == nil {
		err = late
	}
	return n, err
}

var _ net.Conn = (*HTTP2Conn)(nil)

// Read gives package http2 what the client sends.
func (c *HTTP2Conn) Read(p []byte) (n int, err error) { return c.readFor(nil, p) }

// readFor is Read for a session, which may be over.
func (c *HTTP2Conn) readFor(s *session, p []byte) (n int, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	defer c.caught(&err)
	for {
		n, err := c.reader.read(c.Conn, &c.flow, p)
		if n > 0 || err == nil {
			return n, nil // an error comes again
		}
		if err := c.again(err); err != nil {
			return 0, err
		}
		if c.mayRest(s) {
			return 0, io.EOF
		}
	}
}

// Write is given parts of frames, or several frames, by package http2, which does not
// call it twice at once.
func (c *HTTP2Conn) Write(p []byte) (n int, err error) { return c.writeFor(nil, p) }

func (c *HTTP2Conn) writeFor(s *session, p []byte) (n int, err error) {
	defer c.caught(&err)
	c.writing.Add(1)
	defer c.writing.Add(-1)
	if c.writers.Load() > 0 {
		c.awaitWriters()
	}
	if err := c.writeFrames(s, p); err != nil {
		return 0, err
	}
	c.askParting()
	c.sendQueued(true)
	return len(p), nil
}

// caught ends a connection whose frames are not followed any more, instead of the
// process. It must be deferred.
func (c *HTTP2Conn) caught(err *error) {
	if p := recover(); p != nil {
		*err = c.delivery.panicked(p)
		_ = c.queue.conn.Close() // the error ends it as well
	}
}

// writeFrames writes frames of package http2, and those of streams that were taken over
// at the first place between them.
func (c *HTTP2Conn) writeFrames(s *session, p []byte) error {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	if s != c.session {
		return errRests
	}
	c.waits = true
	if c.flow.searching() || len(c.partial) > 0 || c.unsaid.any() {
		p = c.removeTokens(p)
		defer c.tellShown()
	}
	if c.shorts != nil {
		p = c.corrected(p)
	}
	c.flow.allow(len(p))
	between := c.track(p)
	if c.frames.size.Load() > 0 && between >= 0 {
		if _, err := c.coalescer.add(p[:between], true); err != nil {
			return err
		}
		if err := c.addQueued(); err != nil {
			return err
		}
		p = p[between:]
	}
	if len(p) == 0 {
		return c.coalescer.err
	}
	c.greeted.Store(true)
	_, err := c.coalescer.add(p, !c.tracker.betweenFrames() || c.tracker.more || c.writers.Load() > 0)
	return err
}

// addQueued sends the frames of streams that were taken over. The caller holds
// coalescer.mu.
func (c *HTTP2Conn) addQueued() error {
	p := c.frames.take()
	if p == nil {
		return nil
	}
	defer putFrames(p)
	c.flow.allow(len(*p))
	_, err := c.coalescer.add(*p, false)
	return err
}

// sendQueued sends the frames of streams that were taken over, unless somebody else is
// about to.
func (c *HTTP2Conn) sendQueued(wait bool) {
	const enough = 3 * recordSize // to be sent while other writers still make theirs
	for size := c.frames.size.Load(); size > 0; size = c.frames.size.Load() {
		if c.writers.Load() > 0 && size < enough {
			return // the last writer calls this
		}
		if !c.trySendQueued(wait) {
			return
		}
	}
}

// trySendQueued says whether it has sent what was queued. Whoever holds the lock, or
// writes the rest of a frame, goes on with what is queued afterwards.
func (c *HTTP2Conn) trySendQueued(wait bool) bool {
	if !c.coalescer.mu.TryLock() {
		return false
	}
	defer c.coalescer.mu.Unlock()
	c.waits = wait
	if !c.tracker.betweenFrames() {
		return false
	}
	_ = c.addQueued() // the next write returns the error
	return true
}

// queuedTaken sends the frames of streams beside package http2, and waits until the client has
// taken what was sent, or until done.
func (c *HTTP2Conn) queuedTaken(done <-chan struct{}) error {
	const enough = 3 * recordSize
	for {
		c.sendQueued(false)
		if err := c.queue.awaitTaken(done); err != nil || c.frames.size.Load() < enough {
			return err
		}
		select { // somebody else is writing, and sends them next
		case <-done:
		case <-time.After(c.coalescer.limit):
		}
	}
}

// flushQueued sends the frames of streams that were taken over, and waits until the
// client has taken all that was sent.
func (c *HTTP2Conn) flushQueued() error {
	if err := c.addQueuedNow(); err != nil {
		return err
	}
	c.sendQueued(true)
	return c.queue.flush()
}

func (c *HTTP2Conn) addQueuedNow() error {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	c.waits = true
	if c.coalescer.err != nil || !c.tracker.betweenFrames() {
		return c.coalescer.err
	}
	return c.addQueued()
}

// awaitWriters waits until all writers that were added have been removed, but not for
// long. Package http2 writes in a goroutine of its own, and queues meanwhile what others
// bring.
func (c *HTTP2Conn) awaitWriters() {
	timer := time.NewTimer(c.coalescer.limit)
	defer timer.Stop()
	for c.writers.Load() > 0 {
		select {
		case <-c.ready:
		case <-timer.C:
			return
		}
	}
}

// idle says that all that package http2 has written is with the kernel.
func (c *HTTP2Conn) idle() bool {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	return c.writing.Load() == 0 && !c.shorts.busy() && c.coalescer.pending == nil && !c.queue.blocked()
}

// AddWriter implements Conn.
func (c *HTTP2Conn) AddWriter() { c.writers.Add(1) }

// RemoveWriter implements Conn.
func (c *HTTP2Conn) RemoveWriter() {
	if c.writers.Add(-1) == 0 {
		select {
		case c.ready <- struct{}{}:
		default:
		}
		c.sendQueued(false)
	}
}

// MayBlock implements Conn.
func (c *HTTP2Conn) MayBlock(n int64) bool { return c.flow.mayBlock(n) || c.queue.blocked() }

// ID implements Conn.
func (c *HTTP2Conn) ID() uint64 { return c.id }

// Cork implements Conn.
func (c *HTTP2Conn) Cork() { c.corked.Add(1) }

// Uncork implements Conn. The frame that ends the answer is still to come.
func (c *HTTP2Conn) Uncork() { c.corked.Add(-1) }
