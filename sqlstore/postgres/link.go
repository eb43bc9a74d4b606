package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// link is a connection to a server. It knows for how long an answer has been waited for.
type link struct {
	net.Conn
	server server
	of     *hosts
	made   atomic.Bool  // the server has let the client in
	asked  atomic.Int64 // when it was asked something, as time since the epoch of hosts; 0: it has answered
}

func (l *link) Write(b []byte) (int, error) {
	if l.asked.Load() == 0 {
		l.asked.CompareAndSwap(0, int64(time.Since(l.of.epoch)))
	}
	return l.Conn.Write(b)
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.asked.Store(0)
	}
	return n, err
}

func (l *link) Close() error {
	l.of.mu.Lock()
	delete(l.of.links, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

func (l *link) waits() time.Duration {
	asked := l.asked.Load()
	if asked == 0 {
		return 0
	}
	return time.Since(l.of.epoch) - time.Duration(asked)
}

// track has the connection that a configuration makes known as one to a server, and shortens requests that cancel
// its statements, which hold a place in the pool meanwhile.
func (h *hosts) track(c *pgconn.Config, to server) {
	dial, after := c.DialFunc, c.AfterConnect
	var last atomic.Pointer[link]
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l := last.Load(); l != nil && l.made.Load() {
			ctx, cancel := context.WithTimeout(ctx, cancelTime)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err == nil {
				err = conn.SetDeadline(time.Now().Add(cancelTime))
			}
			return conn, err
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{Conn: conn, server: to, of: h}
		h.mu.Lock()
		h.links[l] = struct{}{}
		h.mu.Unlock()
		last.Store(l)
		return l, nil
	}
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if l := last.Load(); l != nil {
			l.made.Store(true)
		}
		if after != nil {
			return after(ctx, conn)
		}
		return nil
	}
}

// watch gives up connections to a server that has been silent for a while where another one
// takes writes. Otherwise each call would wait for its own end, and the network hides that of a
// machine for minutes.
func (h *hosts) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	alive := make(map[server]time.Time)
	for {
		select {
		case <-tick.C:
		case <-h.life.Done():
			return
		}
		quiet, ok := h.quiet(alive)
		if !ok {
			continue
		}
		c := h.base.Copy()
		h.refresh(c)
		found, err := h.find(h.life, c, true)
		switch {
		case err != nil: // none takes writes; the calls that wait may still be answered
		case found == quiet:
			clear(alive)
			alive[quiet] = time.Now()
		default:
			h.giveUp(quiet, found)
		}
	}
}

// quiet is a server that has not answered a connection for longer than silence, if there are others to ask.
func (h *hosts) quiet(alive map[server]time.Time) (server, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.several {
		return server{}, false
	}
	for l := range h.links {
		if l.waits() >= silence && time.Since(alive[l.server]) > believe {
			return l.server, true
		}
	}
	return server{}, false
}

func (h *hosts) giveUp(quiet, instead server) {
	var cut []*link
	h.mu.Lock()
	for l := range h.links {
		if l.server == quiet {
			cut = append(cut, l)
		}
	}
	h.mu.Unlock()
	h.log.Warn("a database server does not answer, and another one takes writes: giving up the connections to the first", "silent", quiet, "server", instead, "connections", len(cut))
	for _, l := range cut {
		l.Conn.Close() // its reader gets an error, and closes it too
	}
	h.moved()
}

// silent says that an answer to a call has been waited for for a while, from a server with which the connection was made.
func (h *hosts) silent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.left) < cancelTime {
		return true
	}
	for l := range h.links {
		if l.made.Load() && l.waits() >= cancelTime {
			return true
		}
	}
	return false
}

// abandon closes a connection that is to be closed without waiting for a server that is silent. The pool
// would wait 15 s for its farewell, and have one connection less meanwhile.
func (h *hosts) abandon(c *pgx.Conn) {
	conn := c.PgConn().Conn()
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if l, ok := conn.(*link); ok && l.waits() >= cancelTime {
		h.mu.Lock()
		h.left = time.Now()
		h.mu.Unlock()
		l.Conn.Close()
	}
}
