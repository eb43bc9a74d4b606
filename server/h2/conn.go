package h2

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

// conn is one connection.
type conn struct {
	server *Server
	tls    *tls.Conn
	socket *wire.Socket
	queue  *wire.Queue // of socket
	id     uint64
	began  time.Time

	// For the reader alone:
	in      *input // nil while it is parked
	decoder *hpack.Decoder
	block   block
	limiter frameLimiter
	greeted bool                 // the preface and the first settings have come
	ignored int                  // requests that came after the client was told to go away
	recv    int64                // bytes of bodies that the client may send
	taken   int64                // bytes of bodies that it was not given back yet
	state   *tls.ConnectionState // of all requests; nil: not asked for yet, as remote
	remote  string

	waiting   atomic.Int64 // since when the reader waits for a frame, in Unix nanoseconds; 0: it does not
	awake     atomic.Int64 // when the first settings came
	opened    atomic.Int64 // when a block of headers began whose end has not come, in Unix nanoseconds; 0: there is none
	ending    atomic.Bool  // the connection is closed, or about to be
	ignores   atomic.Bool  // requests are ignored: the client was told to go away
	allowance atomic.Int64 // frames that the client may send because of what it was sent
	writers   atomic.Int32 // that were added and not removed yet
	running   sync.WaitGroup

	mu            sync.Mutex
	err           error // nothing can be sent any more
	streams       map[uint32]*Stream
	handlers      int    // that run
	newest        uint32 // stream that the client has begun
	closed        closedStreams
	awaited       int       // bytes of bodies that have not come, of requests whose handlers wait for them
	idle          time.Time // since when there are no streams
	window        int64     // bytes of bodies that the client takes, of all streams
	initial       int64     // and of a new one
	windowReduced bool      // the client has made initial less once

	drainAt  time.Time // when the client was told that it will be told to go away
	drained  bool      // it has heard, or had the time to
	goneAway bool      // it has been told, up to newest
	goAwayAt time.Time // when

	out     *[]byte // frames to be sent; nil: none
	pumping bool    // somebody sends them
	blocked bool    // the client does not take what was sent
	unread  int     // frames queued meanwhile that are no part of an answer
	encoder *hpack.Encoder
	encoded bytes.Buffer
	answers int // that were begun
}

func newConn(s *Server, t *tls.Conn, socket *wire.Socket) *conn {
	now := time.Now()
	c := &conn{
		server: s, tls: t, socket: socket, id: lastID.Add(1), began: now, idle: now,
		window: firstWindow, initial: firstWindow, streams: map[uint32]*Stream{},
		recv: bodyWindow * int64(s.cfg.MaxStreams),
	}
	c.limiter.since = now
	c.queue, c.err = socket.UseQueue()
	c.queue.NoWait.Store(true)
	c.block.limit = uint32(s.cfg.MaxHeader) + 320 // as packages net/http count what is in fields besides
	return c
}

// input is what reads frames. Connections that have something to read borrow it.
type input struct {
	conn   *conn
	parks  bool // a wait may end with errPark
	buf    *bufio.Reader
	framer *http2.Framer
}

var inputs = sync.Pool{New: func() any {
	in := &input{}
	in.buf = bufio.NewReaderSize(in, 4<<10)
	in.framer = http2.NewFramer(nil, in.buf)
	in.framer.SetReuseFrames()
	in.framer.SetMaxReadFrameSize(frameMax)
	return in
}}

// errPark: nothing has come for some time.
var errPark = errors.New("the connection is idle")

// Read implements io.Reader. A deadline that has passed is there to have the reader look up.
func (in *input) Read(p []byte) (int, error) {
	c := in.conn
	for {
		n, err := c.tls.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.ending.Load() {
			return n, err
		}
		if err := c.socket.Conn.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
		if in.parks {
			return 0, errPark
		}
	}
}

// greet queues what comes before everything else.
func (c *conn) greet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.framesLocked(func(f *http2.Framer) { // a buffer takes everything
		_ = f.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: c.server.cfg.MaxStreams},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.block.limit},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: bodyWindow},
		)
		if more := c.recv - firstWindow; more > 0 {
			_ = f.WriteWindowUpdate(0, uint32(more))
		}
	})
}

// begin greets the client, and reads its first frames.
func (c *conn) begin() {
	defer c.guard()
	c.decoder = hpack.NewDecoder(4<<10, c.block.add)
	c.decoder.SetMaxStringLength(int(c.block.limit))
	c.mu.Lock()
	c.sendAndUnlock()
	c.borrow()
	var preface [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(c.in.buf, preface[:]); err != nil || string(preface[:]) != http2.ClientPreface {
		if err == nil {
			err = http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.end(err)
		return
	}
	c.serve()
}

func (c *conn) borrow() {
	c.in = inputs.Get().(*input)
	c.in.conn = c
	c.in.buf.Reset(c.in)
}

// giveBack lets go of what only a reader needs, between two frames.
func (c *conn) giveBack() {
	in := c.in
	c.in = nil
	in.conn = nil
	in.buf.Reset(nil)
	inputs.Put(in)
	c.block.fields, c.state, c.remote = nil, nil, ""
}

// serve reads frames until the connection ends, or rests.
func (c *conn) serve() {
	for {
		err := c.awaitFrame()
		if err == errPark {
			c.giveBack()
			c.server.running.Go(c.park) // it goes on instead of this goroutine
			return
		}
		if err == nil {
			err = c.readFrame()
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// park waits for the client to say something, with little stack.
func (c *conn) park() {
	_ = c.socket.AwaitReadable() // the reader gets the same error
	c.server.running.Go(c.resume)
}

func (c *conn) resume() {
	defer c.guard()
	c.borrow()
	c.serve()
}

// guard keeps a fault of this package to the connection that has met it. It must be deferred.
func (c *conn) guard() {
	p := recover()
	if p == nil {
		return
	}
	if to := c.server.cfg.Log; to != nil {
		to.Printf("http2: panic of the connection of %v: %v\n%s", c.tls.RemoteAddr(), p, debug.Stack())
	}
	c.close()
	for range 100 { // c.mu may be locked by what has panicked, for good
		if c.mu.TryLock() {
			c.endAndUnlock()
			c.running.Wait()
			break
		}
		time.Sleep(lingering / 100)
	}
	c.server.forget(c) // nobody looks at it again
}

// awaitFrame waits for the next frame's beginning.
func (c *conn) awaitFrame() error {
	in := c.in
	if in.buf.Buffered() > 0 {
		return nil
	}
	c.waiting.Store(time.Now().UnixNano())
	in.parks = !c.block.open // what has come of a block, and what the framer expects, is in
	_, err := in.buf.Peek(1)
	in.parks = false
	c.waiting.Store(0)
	return err
}

// readFrame reads a frame and does what it asks for. Errors end the connection.
func (c *conn) readFrame() error {
	f, err := c.in.framer.ReadFrame()
	if err == nil {
		c.limiter.frame(f.Header(), c)
		err = c.process(f)
	}
	var bad http2.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return c.resetStream(bad.StreamID, bad.Code)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	return err
}

// end ends the connection, and waits for everything that it has started.
func (c *conn) end(err error) {
	var broken http2.ConnectionError
	if errors.As(err, &broken) {
		c.sayBroken(http2.ErrCode(broken))
	}
	c.ending.Store(true)
	c.in = nil // a framer that has seen an error is of no use to others
	c.mu.Lock()
	c.endAndUnlock()
	_ = c.tls.Close() // it may be closed already
	c.running.Wait()
	c.server.forget(c)
}

// endAndUnlock ends all streams. It is called with c.mu locked, and unlocks it.
func (c *conn) endAndUnlock() {
	if c.err == nil {
		c.err = net.ErrClosed
	}
	streams := c.streams
	c.streams = map[uint32]*Stream{}
	for _, s := range streams {
		s.endLocked()
	}
	c.mu.Unlock()
	for _, s := range streams {
		s.ctx.cancel()
	}
}

// sayBroken tells the client what it did wrong, and gives it some time to read that: a connection
// that is closed before all is read that it has sent may lose what it was told.
func (c *conn) sayBroken(code http2.ErrCode) {
	c.mu.Lock()
	c.goneAway = true
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteGoAway(c.newest, code, nil) }) // a buffer takes everything
	streams := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		streams = append(streams, s)
	}
	c.sendAndUnlock()
	for _, s := range streams {
		s.ctx.cancel()
	}
	if half, ok := c.socket.Conn.(interface{ CloseWrite() error }); ok && !c.isBlocked() {
		_ = half.CloseWrite() // a peer that has gone needs no shutdown
	}
	var sink [4 << 10]byte
	_ = c.socket.Conn.SetReadDeadline(time.Now().Add(lingering))
	for {
		if _, err := c.socket.Conn.Read(sink[:]); err != nil {
			return
		}
	}
}

func (c *conn) isBlocked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pumping
}

// close has the reader end the connection.
func (c *conn) close() {
	c.ending.Store(true)
	_ = c.socket.Conn.Close() // it may be closed already
}

// hangUp is close for a connection on which nothing is under way: the client hears of it.
func (c *conn) hangUp() {
	c.ending.Store(true)
	_ = c.tls.Close() // it may be closed already
}

// look is called now and then.
func (c *conn) look(now time.Time) {
	if since := c.waiting.Load(); since != 0 && now.UnixNano()-since >= int64(parkAfter) && c.socket.CanAwait() {
		_ = c.socket.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed; a closed connection says so when it is read
	}
	if c.awake.Load() == 0 && now.Sub(c.began) >= greetingTime {
		c.hangUp()
		return
	}
	if since := c.opened.Load(); since != 0 && now.UnixNano()-since >= int64(patience) {
		c.close()
		return
	}
	c.mu.Lock()
	var late []*Stream
	if c.awaited > 0 {
		for _, s := range c.streams {
			if s.awaits && now.Sub(s.since) >= patience {
				late = append(late, s)
			}
		}
	}
	for _, s := range late {
		c.resetLocked(s, http2.ErrCodeCancel)
	}
	rests := len(c.streams) == 0 && c.handlers == 0
	closes := rests && c.goneAway && now.Sub(c.goAwayAt) >= lingering
	if rests && !c.goneAway && now.Sub(c.idle) >= c.server.cfg.IdleTimeout {
		c.goAwayLocked(http2.ErrCodeNo)
	}
	c.sendAndUnlock()
	for _, s := range late {
		s.ctx.cancel()
	}
	if closes {
		c.hangUp()
	}
}

// peer is the address of the client, and what its handshake has shown.
func (c *conn) peer() (string, *tls.ConnectionState) {
	if c.state == nil {
		state := c.tls.ConnectionState()
		c.state, c.remote = &state, c.tls.RemoteAddr().String()
	}
	return c.remote, c.state
}

// AddWriter implements wire.Conn.
func (c *conn) AddWriter() { c.writers.Add(1) }

// RemoveWriter implements wire.Conn.
func (c *conn) RemoveWriter() {
	if c.writers.Add(-1) == 0 {
		c.mu.Lock()
		c.sendAndUnlock()
	}
}

// MayBlock implements wire.Conn.
func (c *conn) MayBlock(n int64) bool {
	const others = 128 // that may be under way
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windowReduced || c.blocked || n > c.initial || n > c.window/others
}

// ID implements wire.Conn.
func (c *conn) ID() uint64 { return c.id }

// Cork implements wire.Conn: an answer is collected as it is.
func (c *conn) Cork() {}

// Uncork implements wire.Conn.
func (c *conn) Uncork() {}

// value is what contexts of requests know besides.
func (c *conn) value(key any) any {
	switch key {
	case wire.Key{}:
		return wire.Conn(c)
	case http.ServerContextKey:
		return c.server.hs
	case http.LocalAddrContextKey:
		return c.tls.LocalAddr()
	}
	return nil
}
