package h2

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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

// closedStreams are the streams that were closed last. Frames for them are allowed if the client could
// not know that they were closed.
type closedStreams struct {
	ids  [32]uint32 // with resetBit if the server has reset the stream
	next uint8
}

const resetBit = 1 << 31

func (r *closedStreams) add(id uint32, reset bool) {
	if reset {
		id |= resetBit
	}
	r.ids[r.next%uint8(len(r.ids))] = id
	r.next++
}

// find reports whether a stream is among them, and whether the server has reset it.
func (r *closedStreams) find(id uint32) (known, reset bool) {
	for _, one := range r.ids {
		if one&^resetBit == id {
			return true, one != id
		}
	}
	return false, false
}
