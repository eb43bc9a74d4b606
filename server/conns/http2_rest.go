package conns

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// restAfter is how long package http2 has nothing to do on a connection before it is let go.
const restAfter = time.Second

// errRests: package http2 has left the connection, and writes nothing any more.
var errRests = errors.New("the connection rests")

// rest is how a connection goes on without package http2, while nothing is under way but
// answers that go on without their handlers. What package http2 has for a connection, three
// goroutines and their buffers, is more than all else that such a connection needs. It is
// told that the client has gone, and leaves. What the client says is read on: what is for those
// answers, pings, and short requests are dealt with here. With anything else package
// http2 comes again, as a new session, and is told what it has to know of those before:
// the client's settings, and nothing of its window. What it says as a greeting does
// not leave. Its headers depend on no table of those before, as the layer has written those of
// the client anew, and the client's own table holds at least what a new one does, or the session
// is told the least that it held and begins by saying so (remember).
//
// Where a connection cannot rest, one handler stays (outlivers).
type rest struct {
	never  bool         // there are too few connections for that to be worth anything (DeliveryConfig.RestFrom)
	asked  atomic.Bool  // who reads looks whether the connection can rest, or needs package http2 again
	alone  atomic.Bool  // package http2 has left the connection, to come again or not
	pings  atomic.Int32 // that package http2 has not answered
	heeds  atomic.Bool  // nor settings
	mixed  bool         // settings came before others were answered; for who reads, as the next but one
	barred atomic.Bool  // package http2 was asked to say when it has answered all settings so far
	given  int64        // bytes of bodies that package http2 has got since it came
	over   atomic.Bool  // package http2 has left for good

	granted int64 // bytes of the window for bodies that package http2 has given back; guarded by coalescer.mu, as the next
	grows   bool  // it is about to say first by how much that window is larger than others begin with
}

// asks is told of frames for package http2.
func (r *rest) asks(h *head) {
	switch {
	case h.kind() == dataFrame:
		r.given += int64(h.length())
	case h.has(ack):
	case h.kind() == pingFrame:
		r.pings.Add(1)
	case h.kind() == settingsFrame:
		// Package http2 may answer several at once: which ones, nobody can tell.
		r.mixed = r.heeds.Swap(true) || r.barred.Load() || r.mixed
	}
}

// grants is told of what package http2 gives back of the window for bodies of all streams.
func (r *rest) grants(n int64) {
	if r.grows {
		r.grows = false
		return
	}
	r.granted += n
}

// answered is told of frames of package http2.
func (r *rest) answered(h *head) {
	switch {
	case !h.has(ack):
	case h.kind() == pingFrame:
		r.pings.Add(-1)
	case h.kind() == settingsFrame:
		r.heeds.Store(false)
	}
}

// session is a connection as one time of package http2's sees it.
type session struct {
	*HTTP2Conn
	greeting []byte        // the settings that it reads first
	begin    []byte        // what it reads then
	heard    chan struct{} // closed when it has answered the former, or has ended; nil: it is the first
	end      sync.Once     // closes it
	left     atomic.Bool   // the connection rests since
}

// HTTP2Of finds the connection that package http2 tells hooks of; nil if it is none.
func HTTP2Of(c net.Conn) *HTTP2Conn {
	switch c := c.(type) {
	case *session:
		return c.HTTP2Conn
	case *HTTP2Conn:
		return c
	}
	return nil
}

// Read implements net.Conn. It says that the client has gone where the connection can rest.
func (s *session) Read(p []byte) (int, error) {
	next := &s.greeting
	if len(s.greeting) == 0 {
		next = &s.begin
	}
	if len(*next) > 0 {
		if next == &s.begin {
			<-s.heard // or else settings of the client may be answered together with those
		}
		n := copy(p, *next)
		*next = (*next)[n:]
		return n, nil
	}
	return s.readFor(s, p)
}

// Write implements net.Conn.
func (s *session) Write(p []byte) (int, error) { return s.writeFor(s, p) }

// Close implements net.Conn.
func (s *session) Close() error {
	s.answered()
	if s.left.Load() {
		return nil
	}
	return s.HTTP2Conn.Close()
}

// answered says that the settings in the greeting are answered, or nobody waits for that any more.
func (s *session) answered() {
	if s.heard != nil {
		s.end.Do(func() { close(s.heard) })
	}
}

// serveSessions serves a connection by package http2 whenever that has something to do.
func (c *HTTP2Conn) serveSessions(h2 *http2.Server, opts *http2.ServeConnOpts) {
	may, left := c.delivery.mayRest()
	defer left()
	c.rest.never = !may
	grows := h2.MaxUploadBufferPerConnection != initialWindow // which package http2 says in its greeting
	c.rest.grows = grows
	for s := c.firstSession(); s != nil; s = c.nextSession(s, grows) {
		opts.SawClientPreface = s.heard != nil
		s.serve(h2, opts)
	}
}

// serve has package http2 serve a session in a goroutine of its own, whose stack goes with it: the caller's lasts as
// long as the connection.
func (s *session) serve(h2 *http2.Server, opts *http2.ServeConnOpts) {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		h2.ServeConn(s, opts)
	}()
	if p := <-ended; p != nil {
		panic(p) // package net/http knows what to do
	}
}

func (c *HTTP2Conn) firstSession() *session {
	s := &session{HTTP2Conn: c}
	c.takeFrom(s, unsaid{})
	return s
}

// takeFrom has frames taken from a session but for its greeting, and from no other.
func (c *HTTP2Conn) takeFrom(s *session, but unsaid) {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	c.session, c.unsaid = s, but
}

// nextSession waits until package http2 is needed again; nil if the connection has ended.
func (c *HTTP2Conn) nextSession(last *session, grows bool) *session {
	if !last.left.Load() {
		return nil
	}
	next := &session{HTTP2Conn: c, heard: make(chan struct{})}
	if c.awaitSession(next) != nil {
		_ = c.Conn.Close() // as package http2 does
		return nil
	}
	c.takeFrom(next, unsaid{settings: true, ack: true, update: grows})
	c.outlivers.ask()
	return next
}

// awaitSession reads while the connection rests, and has a session greeted by what is for package http2.
func (c *HTTP2Conn) awaitSession(s *session) error {
	_, r := below(c.Conn)
	for !c.wanted() && len(s.begin) == 0 {
		if err := c.again(r.await(s.readFirst)); err != nil {
			return err
		}
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.rest.alone.Store(false)
	s.greeting = c.flow.wakeUp()
	return nil
}

// readFirst reads until something is for package http2.
func (s *session) readFirst() (done bool, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	defer s.caught(&err)
	var first [16]byte
	n, err := s.reader.read(s.Conn, &s.flow, first[:])
	if n > 0 {
		s.begin = append(s.begin, first[:n]...)
		return true, nil // an error comes again
	}
	return false, err
}

// wanted says that package http2 has to come again though the client has not said anything.
func (c *HTTP2Conn) wanted() bool {
	return c.parting.wanted.Load() || c.outlivers.empty()
}

// again is called after a read that failed. A deadline that has passed is there to have the
// state looked at, and is taken away.
func (c *HTTP2Conn) again(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.lost.Store(true)
		c.shorts.cancel()
		c.outlivers.cancel()
		return err
	}
	return c.SetReadDeadline(time.Time{})
}

// askRest has who reads look whether the connection can rest.
func (c *HTTP2Conn) askRest() {
	c.rest.asked.Store(true)
	c.flow.wake()
}

// mayRest lets package http2 go if it has nothing to do. It is called by who reads for it, so that
// it gets nothing more meanwhile.
func (c *HTTP2Conn) mayRest(s *session) bool {
	if s == nil || !c.rest.asked.Swap(false) || c.shorts == nil || c.outlivers.empty() {
		return false
	}
	if c.parting.wanted.Load() || c.flow.neverRests() {
		c.outlivers.stopAsking() // none of this changes
		return false
	}
	if c.rest.mixed {
		c.settle()
	}
	if c.rest.mixed || c.rest.barred.Load() || c.reader.left > 0 || c.shorts.block.open || c.rest.pings.Load() > 0 || c.rest.heeds.Load() || c.queue.blocked() || time.Since(c.shorts.last) < c.delivery.restAfter {
		c.outlivers.ask()
		return false
	}
	left, ends := c.leave(s)
	if ends {
		c.rest.asked.Store(true) // and again when the end has left
		c.outlivers.letGo()
	}
	if !left {
		c.outlivers.ask()
		return false
	}
	c.rest.alone.Store(true)
	c.outlivers.stopAsking()
	c.outlivers.letGo() // who has not heard of the end of a stream
	c.sendQueued(false)
	c.shorts.rest()
	if c.reader.have == 0 {
		c.reader.buf = nil
	}
	return true
}

// settle has package http2 tell when it has answered all settings that it has got, by a ping of this side's: it
// answers settings before pings that came later. The caller reads.
func (c *HTTP2Conn) settle() {
	if c.reader.left > 0 || c.reader.have > 0 || c.rest.pings.Load() > 0 || c.rest.barred.Load() {
		return
	}
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	if c.unsaid.any() {
		return
	}
	c.unsaid.pong = true
	c.rest.barred.Store(true)
	c.rest.mixed = false
	c.reader.give(settledPing)
}

// settledPing is a ping of settle.
var settledPing = []byte{0, 0, 8, pingFrame, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// leave takes nothing from package http2 any more if it has nothing under way. ends says that nothing is
// but streams that go on, of which package http2 has not said the end that nobody hears.
func (c *HTTP2Conn) leave(s *session) (left, ends bool) {
	c.coalescer.mu.Lock()
	defer c.coalescer.mu.Unlock()
	if !c.tracker.betweenFrames() || len(c.partial) > 0 || c.coalescer.pending != nil || c.coalescer.err != nil || c.unsaid.any() || c.handlers.Load() > 0 {
		return false, false
	}
	owed := c.rest.given - c.rest.granted
	if owed < 0 {
		return false, false
	}
	if left, ends = c.flow.rest(); !left {
		return false, ends
	}
	if c.rest.given, c.rest.granted = 0, 0; owed > 0 { // package http2 gives back several kilobytes at once
		c.frames.addNumber(updateFrame, 0, uint32(owed))
	}
	c.shorts.before = c.flow.latest()
	s.left.Store(true)
	c.session, c.partial, c.shown = nil, nil, nil
	return true, false
}

// neverRests says that something keeps the connection from resting that does not change.
func (f *flowControl) neverRests() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.split || f.goneAway.Load()
}

// rest divides what the client may be sent as for a new session, if package http2 has no stream under way.
// ends is as of leave: then the reader is woken when it has.
func (f *flowControl) rest() (rests, ends bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.split || f.most <= initialWindow || f.goneAway.Load() || f.pool+f.told < initialWindow || len(f.unsent)+len(f.sending)+len(f.searches) > 0 {
		return false, false
	}
	if f.ends = len(f.unended) > 0; f.ends {
		return false, true
	}
	f.pool += f.told - initialWindow
	f.told, f.rests, f.pending = initialWindow, true, false
	f.taken = f.newest
	f.unsent = map[uint32]int64{} // for the stream that package http2 comes again for; a new one is smaller
	f.sending, f.searches, f.unended = nil, nil, nil
	return true, false
}

// wakeResting has the reader look at a connection that rests.
func (f *flowControl) wakeResting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rests {
		f.wake()
	}
}

// rest lets go of what only package http2 needs. The caller reads.
func (s *shorts) rest() {
	s.tls, s.remote, s.encoder, s.block.fields = nil, "", nil, nil
	s.encoded = bytes.Buffer{}
}

var _ io.ReadWriteCloser = (*session)(nil)
