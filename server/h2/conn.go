package h2

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
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

	reader

	waiting     atomic.Int64 // Unix nanoseconds: since when the reader has waited for a frame; 0: it does not
	blockOpened atomic.Int64 // Unix nanoseconds: when a header block began that has not ended; 0: there is none
	ready       atomic.Bool  // the client's first SETTINGS frame has arrived
	closing     atomic.Bool
	refusing    atomic.Bool  // GOAWAY was sent: new requests are ignored
	frameCredit atomic.Int64 // frames that the client may send in return for what it was sent
	writers     atomic.Int32 // AddWriter calls without RemoveWriter
	running     sync.WaitGroup

	mu            sync.Mutex
	err           error // why nothing can be sent any more
	streams       map[uint32]*Stream
	handlers      int    // that run
	waiters       int    // goroutines in Stream.waitLocked
	lastStream    uint32 // the newest stream that the client has opened
	closed        closedStreams
	buffering     int       // bytes of bodies announced by streams that are buffering
	idleSince     time.Time // if there are no streams
	sendWindow    int64     // bytes of bodies that the client accepts on all streams
	initialWindow int64     // of new streams
	windowReduced bool      // the client has lowered initialWindow

	drainAt     time.Time // when draining began
	announcedAt time.Time // when the first GOAWAY of that was sent
	drained     bool      // the client has acknowledged it, or had the time to
	goneAway    bool      // GOAWAY was sent with lastStream
	goAwayAt    time.Time // when, or when the last stream ended

	out       *[]byte // queued frames; nil: none
	split     int     // bytes of out before a new TLS record; 0: any records
	flushing  bool    // a goroutine sends them
	blocked   bool    // the client does not read what was sent
	unread    int     // control frames that were queued meanwhile
	encoder   *hpack.Encoder
	encoded   bytes.Buffer
	responses int
}

// newConn makes a connection, and queues the server's preface.
func newConn(s *Server, t *tls.Conn, socket *wire.Socket) *conn {
	now := time.Now()
	c := &conn{
		server: s, tls: t, socket: socket, id: lastID.Add(1), began: now, idleSince: now,
		sendWindow: defaultWindow, initialWindow: defaultWindow, streams: map[uint32]*Stream{},
	}
	c.recvWindow = bodyWindow * int64(s.cfg.MaxStreams)
	c.limiter.since = now
	c.queue, c.err = socket.UseQueue()
	c.queue.NoWait.Store(true)
	c.block.limit = uint32(s.cfg.MaxHeader) + 320 // packages net/http add as much for the overhead of fields
	c.decoder = hpack.NewDecoder(4<<10, c.block.add)
	c.decoder.SetMaxStringLength(int(c.block.limit))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.framesLocked(func(f *http2.Framer) { // writes to a buffer do not fail, here and below
		_ = f.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: s.cfg.MaxStreams},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.block.limit},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: bodyWindow},
		)
		if more := c.recvWindow - defaultWindow; more > 0 {
			_ = f.WriteWindowUpdate(0, uint32(more))
		}
	})
	return c
}

// recoverPanic confines a panic in this package to the connection. It must be deferred.
func (c *conn) recoverPanic() {
	p := recover()
	if p == nil {
		return
	}
	if to := c.server.cfg.Log; to != nil {
		to.Printf("http2: panic of the connection of %v: %v\n%s", c.tls.RemoteAddr(), p, debug.Stack())
	}
	c.abort()
	for range 100 { // the panicking code may have left c.mu locked
		if c.mu.TryLock() {
			c.endAndUnlock()
			c.running.Wait()
			break
		}
		time.Sleep(closeDelay / 100)
	}
	c.server.remove(c)
}

// end closes the connection, and waits for its handlers and detached streams.
func (c *conn) end(err error) {
	var broken http2.ConnectionError
	if errors.As(err, &broken) {
		c.reportError(http2.ErrCode(broken))
	}
	c.closing.Store(true)
	c.input = nil // a framer cannot be reused after an error
	c.mu.Lock()
	c.endAndUnlock()
	_ = c.tls.Close() // it may be closed already
	c.running.Wait()
	c.server.remove(c)
}

// endAndUnlock ends all streams, and unlocks c.mu.
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

// reportError sends GOAWAY with an error code, and gives the client some time to read it: closing a
// connection with unread input may discard what was sent.
func (c *conn) reportError(code http2.ErrCode) {
	c.mu.Lock()
	c.goneAway = true
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteGoAway(c.lastStream, code, nil) })
	streams := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		streams = append(streams, s)
	}
	c.sendAndUnlock()
	for _, s := range streams {
		s.ctx.cancel()
	}
	c.mu.Lock()
	flushing := c.flushing
	c.mu.Unlock()
	if half, ok := c.socket.Conn.(interface{ CloseWrite() error }); ok && !flushing {
		_ = half.CloseWrite() // the client may have closed the connection
	}
	var discarded [4 << 10]byte
	_ = c.socket.Conn.SetReadDeadline(time.Now().Add(closeDelay))
	for {
		if _, err := c.socket.Conn.Read(discarded[:]); err != nil {
			return
		}
	}
}

// abort closes the socket, so that the reader ends the connection.
func (c *conn) abort() {
	c.closing.Store(true)
	_ = c.socket.Conn.Close() // it may be closed already
	c.server.poller.Wake(c.id)
}

// close is abort after a TLS close_notify, for a connection without streams.
func (c *conn) close() {
	c.closing.Store(true)
	_ = c.tls.Close() // it may be closed already
	c.server.poller.Wake(c.id)
}

// checkTimeouts is called at each tick.
func (c *conn) checkTimeouts(now time.Time) {
	if since := c.waiting.Load(); since != 0 && now.UnixNano()-since >= int64(parkAfter) && c.socket.CanAwait() {
		_ = c.socket.Conn.SetReadDeadline(time.Unix(1, 0)) // interrupts the reader; on a closed connection it fails anyway
	}
	if !c.ready.Load() && now.Sub(c.began) >= prefaceTimeout {
		c.close()
		return
	}
	if since := c.blockOpened.Load(); since != 0 && now.UnixNano()-since >= int64(patience) {
		c.abort()
		return
	}
	c.mu.Lock()
	var late []*Stream
	if c.buffering > 0 {
		for _, s := range c.streams {
			if s.buffering && now.Sub(s.since) >= patience {
				late = append(late, s)
			}
		}
	}
	for _, s := range late {
		c.resetLocked(s, http2.ErrCodeCancel)
	}
	idle := len(c.streams) == 0 && c.handlers == 0
	closes := idle && c.goneAway && now.Sub(c.goAwayAt) >= closeDelay
	if idle && !c.goneAway && now.Sub(c.idleSince) >= c.server.cfg.IdleTimeout {
		c.goAwayLocked()
	}
	c.sendAndUnlock()
	for _, s := range late {
		s.ctx.cancel()
	}
	if closes {
		c.close()
	}
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
	const others = 128 // responses that may share the window
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windowReduced || c.blocked || n > c.initialWindow || n > c.sendWindow/others
}

// ID implements wire.Conn.
func (c *conn) ID() uint64 { return c.id }

// Cork implements wire.Conn: responses are buffered anyway.
func (c *conn) Cork() {}

// Uncork implements wire.Conn.
func (c *conn) Uncork() {}

// value serves the contexts of requests.
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

var _ wire.Conn = (*conn)(nil)
