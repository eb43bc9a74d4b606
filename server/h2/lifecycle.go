package h2

import (
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

// lastID numbers connections.
var lastID atomic.Uint64

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
	if broken, ok := errors.AsType[http2.ConnectionError](err); ok {
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
	streams := slices.Collect(maps.Values(c.streams))
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
