// Package conns joins what is written to the connections of clients, so that bulk
// leaves in few large pieces: package tls hands every record of 16 KB to the kernel
// by itself, and package http2 makes a full and a tiny record of every frame.
//
// And it lets watches leave packages net/http and http2, which take more memory and time
// for them than they need: over HTTP/1.1 their connections are taken over, over HTTP/2
// their frames are put between those of package http2.
//
// It promises: bytes keep their order; what is not bulk is written at once; what is
// held back waits a millisecond for more at most; the error of a delayed write is
// returned by the next one; an answer that broke off does not look whole; windows of
// HTTP/2 are kept. Its goroutines are those of timers, which end by themselves, one for
// each connection over HTTP/2 whose client is slow, which ends with the client's time or
// the connection, and one for each request that may be a watch over HTTP/1.1, which
// Hijacker.Close ends.
package conns

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	record  = 16 << 10         // bytes that a TLS record carries at most
	holdMax = 4*record + 256   // from here on, nothing is held back: four records
	holdFor = time.Millisecond // nor for longer, as a rule

	spaceSize = holdMax + 2*record
)

// spaces lends the memory of what is held back; few connections carry bulk at a time.
var spaces = sync.Pool{New: func() any {
	b := make([]byte, 0, spaceSize)
	return &b
}}

// hold keeps bytes that more will follow, and writes all of them at once.
type hold struct {
	mu    sync.Mutex
	out   func([]byte) (int, error)
	limit time.Duration
	bytes *[]byte // nil while nothing is held
	timer *time.Timer
	err   error  // of a write that nobody waited for
	after func() // called when what nothing has followed was written; may be nil
}

// pass writes p behind what is held. more says that other bytes will follow soon:
// then p may be held as well.
func (h *hold) pass(p []byte, more bool) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.add(p, more)
}

// add is pass with h.mu held.
func (h *hold) add(p []byte, more bool) (int, error) {
	if h.err != nil {
		return 0, h.err
	}
	if h.bytes != nil && len(*h.bytes)+len(p) > cap(*h.bytes) {
		if err := h.flush(); err != nil {
			return 0, err
		}
	}
	if h.bytes == nil {
		if !more || len(p) >= holdMax-record {
			return h.out(p)
		}
		h.bytes = spaces.Get().(*[]byte)
		h.arm()
	}
	*h.bytes = append(*h.bytes, p...)
	if more && len(*h.bytes) < holdMax-record {
		return len(p), nil
	}
	if err := h.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// arm makes sure that nothing stays here if nothing follows after all.
func (h *hold) arm() {
	if h.timer == nil {
		h.timer = time.AfterFunc(h.limit, h.late)
	} else {
		h.timer.Reset(h.limit)
	}
}

// late writes what nothing has followed.
func (h *hold) late() {
	h.mu.Lock()
	_ = h.flush() // the next write returns it
	h.mu.Unlock()
	if h.after != nil {
		h.after()
	}
}

// flush writes what is held. h.mu is held.
func (h *hold) flush() error {
	if h.bytes == nil {
		return h.err
	}
	h.timer.Stop()
	_, h.err = h.out(*h.bytes)
	*h.bytes = (*h.bytes)[:0]
	spaces.Put(h.bytes)
	h.bytes = nil
	return h.err
}

// Listener joins the TLS records of the connections that it accepts.
type Listener struct {
	net.Listener
	Hold time.Duration // how long bytes wait for more at most; default a millisecond
}

// Accept waits for a connection.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r := &records{Conn: c}
	r.hold.out, r.hold.limit = r.put, cmp.Or(l.Hold, holdFor)
	return r, nil
}

// over sends what is held, and has all that comes written by a sluice.
func (r *records) over(s *sluice) error {
	r.hold.mu.Lock()
	defer r.hold.mu.Unlock()
	r.sluice.Store(s)
	return r.hold.flush()
}

// records is a connection below TLS. A full record is held back: as a rule its
// message goes on in another.
type records struct {
	net.Conn
	hold   hold
	whole  atomic.Int32
	sluice atomic.Pointer[sluice] // that has taken over
	owned  atomic.Bool            // others set deadlines of writes
	armed  atomic.Int64           // when one was set here, in nanoseconds; 0: not yet
}

// put writes to the connection, and gives up a client that takes nothing.
func (r *records) put(p []byte) (int, error) {
	if now := time.Now(); !r.owned.Load() && now.UnixNano()-r.armed.Load() > int64(patience/4) {
		r.armed.Store(now.UnixNano())
		_ = r.Conn.SetWriteDeadline(now.Add(patience)) // a closed connection says so below
	}
	return r.Conn.Write(p)
}

// SetWriteDeadline is for package net/http and handlers, whose deadlines come first. A
// write may be under way.
func (r *records) SetWriteDeadline(t time.Time) error {
	r.owned.Store(!t.IsZero())
	r.armed.Store(0)
	return r.Conn.SetWriteDeadline(t)
}

// SetDeadline is how package net/http lets go of a connection: what a handler has taken
// over may rest for as long as that likes.
func (r *records) SetDeadline(t time.Time) error {
	r.owned.Store(true)
	return r.Conn.SetDeadline(t)
}

// Write takes one TLS record, or several.
func (r *records) Write(p []byte) (int, error) {
	if s := r.sluice.Load(); s != nil {
		return s.write(p)
	}
	return r.hold.pass(p, len(p) > record || r.whole.Load() > 0)
}

func (r *records) Cork() { r.whole.Add(1) }

func (r *records) Uncork() {
	r.whole.Add(-1)
	r.hold.late()
}

func (r *records) AddWriter()          {}
func (r *records) RemoveWriter()       {}
func (r *records) ID() uint64          { return 0 }
func (r *records) MayBlock(int64) bool { return false } // each write has its deadline

// Conn is the connection of a request.
type Conn interface {
	// Whole says that an answer is written to its end without a pause, so that all of
	// it can go out together, until Done is called. What waited for more is sent then,
	// or with the end of the answer.
	Cork()
	Uncork()
	// AddWriter says that one more of those who share the connection will have something to
	// send at once; RemoveWriter, that what it had is about to be written. What the others send
	// waits for it, as long as what is held back waits for more.
	AddWriter()
	RemoveWriter()
	// Order tells the connections of HTTP/2 apart.
	ID() uint64
	// MayBlock says whether so many bytes of an answer may have to wait for the client
	// without end, unless the answer has a deadline.
	MayBlock(n int64) bool
}

type connKey struct{}

// Context is for the requests of a connection of a Listener, one of TLS; it has the
// form of http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if r, ok := t.NetConn().(*records); ok {
			r.owned.Store(false)
			r.armed.Store(0)
			return context.WithValue(ctx, connKey{}, Conn(r))
		}
	}
	return ctx
}

// Of finds the connection that a request came by; nil if it is none of a Listener.
func FromContext(ctx context.Context) Conn {
	j, _ := ctx.Value(connKey{}).(Conn)
	return j
}

// overTLS says whether a request came by a connection of Context.
func overTLS(ctx context.Context) bool {
	_, ok := ctx.Value(connKey{}).(*records)
	return ok
}
