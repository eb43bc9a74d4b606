package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// link is a connection to a server. It measures how long the client has waited for an answer.
type link struct {
	net.Conn
	server server
	of     *hosts
	made   atomic.Bool // the server has let the client in
	writes atomic.Bool // a batch was sent whose outcome is not known
	// unconfirmed is set by a commit that waited for a standby until the wait was cancelled.
	unconfirmed atomic.Bool
	sent        atomic.Int64 // when the unanswered request was sent, as time since the epoch of hosts; 0: there is none
}

func (l *link) Write(b []byte) (int, error) {
	if l.sent.Load() == 0 {
		l.sent.CompareAndSwap(0, int64(time.Since(l.of.epoch)))
	}
	return l.Conn.Write(b)
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.sent.Store(0)
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
	sent := l.sent.Load()
	if sent == 0 {
		return 0
	}
	return time.Since(l.of.epoch) - time.Duration(sent)
}

// track registers the connection that a configuration makes as a link to a server. It also sets a deadline for
// requests that cancel the connection's statements, as they occupy a place in the pool, and prevents those that would
// cancel a commit.
func (h *hosts) track(c *pgconn.Config, to server) {
	dial, after := c.DialFunc, c.AfterConnect
	var last atomic.Pointer[link]
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l := last.Load(); l != nil && l.made.Load() {
			if l.writes.Load() {
				return nil, errNotCancelled
			}
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

// watch closes the connections to a server that has been silent for a while if another one takes
// writes. Otherwise each call would wait for its own timeout: TCP takes minutes to notice that a
// machine has failed.
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

// quiet returns a server that has left a request unanswered for longer than silence, if there are other servers.
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

// silent reports whether a call waits for a server, over an established connection, for cancelTime or longer, or did a
// moment ago.
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

// linkOf returns the link of a connection, which every connection that choose has configured has.
func linkOf(c *pgconn.PgConn) *link {
	conn := c.Conn()
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	l, _ := conn.(*link)
	return l
}

// abandon closes the socket of a connection that the pool closes, if the server is silent. The pool would wait 15 s
// to terminate the session, and have one connection less meanwhile.
func (h *hosts) abandon(c *pgx.Conn) {
	if l := linkOf(c.PgConn()); l != nil && l.waits() >= cancelTime {
		h.mu.Lock()
		h.left = time.Now()
		h.mu.Unlock()
		l.Conn.Close()
	}
}
