package conns

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of what is served beside package http2 on one connection. What exceeds them is left
// to package http2.
const (
	shortMax       = 32        // requests at once, and no more than package http2 serves
	shortFields    = 64        // of the headers of a request
	shortBody      = 64 << 10  // bytes of one body
	shortBodies    = 256 << 10 // bytes of all bodies that have not come yet, as they were announced
	shortWindow    = 64 << 10  // bytes of bodies after which the client is given back its window
	shortPassEvery = time.Minute

	enoughPadding = 4 << 10 // bytes of padding after which a client is given back its window
	hpackTable    = 4 << 10 // bytes of the table of headers that each end keeps at first
)

// Short is how short requests are served over HTTP/2: those whose body is small and comes
// with its length, and that the function below says are answered soon.
type Short struct {
	// Is says by the method and the path, with its query, whether a request is one that is
	// answered at once. nil: none is, and package http2 serves all.
	Is func(method, path string) bool
}

// shorts serves short requests of one connection. Package http2 takes a dozen hops between
// goroutines for a request and writes its answer in a goroutine of its own; here a request
// is handed to a goroutine once all of it has come, and that one writes the answer.
//
// Package http2 does not know of these streams: frames about them do not reach it, and the
// blocks of headers that do are written anew, as their compression depends on those before.
// Of headers that are sent none gets into the table that both ends keep for package http2.
// Once a minute a request is left to it, so that it sees that the connection is in use.
type shorts struct {
	conn    *HTTP2Conn
	is      func(method, path string) bool
	handler http.Handler
	hs      *http.Server
	base    context.Context
	frame   int // bytes of the largest frame that package http2 takes
	window  int // bytes that a client may send of a body unasked
	most    int // requests at once

	// For the goroutine that reads:
	decoder *hpack.Decoder
	block   headerBlock
	encoded bytes.Buffer
	encoder *hpack.Encoder
	passed  uint32    // the newest stream that package http2 knows
	before  uint32    // the newest that was begun before this session of package http2
	last    time.Time // when it was told of one
	taken   int       // bytes of bodies that the client was not given back yet
	tls     *tls.ConnectionState
	remote  string

	mu       sync.Mutex
	streams  map[uint32]*shortStream // from their headers until their handlers have returned
	awaited  int                     // bytes of bodies that have not come
	overdue  *time.Timer             // ends requests whose bodies do not come; nil: none is awaited
	handlers sync.WaitGroup
	leaving  bool          // package http2 has closed the connection: nothing is taken any more
	none     chan struct{} // not nil: closed when no request is left
	closed   bool          // no handler is started any more
	leave    bool          // package http2 is to tell the client to go away
}

// newShorts is nil where nothing is short.
func newShorts(ctx context.Context, c *HTTP2Conn, short Short, h2 *http2.Server, hs *http.Server, h http.Handler) *shorts {
	if short.Is == nil || !c.delivery.Direct() {
		return nil
	}
	s := &shorts{
		conn: c, is: short.Is, handler: h, hs: hs, streams: map[uint32]*shortStream{}, most: shortMax,
		// What is not set is what package http2 takes then.
		frame: cmp.Or(int(h2.MaxReadFrameSize), 1<<20), window: max(initialWindow, int(cmp.Or(h2.MaxUploadBufferPerStream, 1<<20))),
	}
	if h2.MaxConcurrentStreams > 0 {
		s.most = int(min(shortMax, h2.MaxConcurrentStreams))
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.LocalAddr())
	ctx = context.WithValue(ctx, http.ServerContextKey, hs)
	s.base = context.WithValue(ctx, connKey{}, Conn(c))
	s.block.limit = uint32(headersMax(hs))
	s.decoder = hpack.NewDecoder(cmp.Or(h2.MaxDecoderHeaderTableSize, hpackTable), s.block.add)
	s.decoder.SetMaxStringLength(int(s.block.limit))
	return s
}

// headersMax is how large the headers of a request may be, as package http2 counts them.
func headersMax(hs *http.Server) int {
	const perField, typical = 32, 10 // as in RFC 9113, 6.5.2, and as package http2 takes it
	if hs.MaxHeaderBytes > 0 {
		return hs.MaxHeaderBytes + perField*typical
	}
	return http.DefaultMaxHeaderBytes + perField*typical
}

// busy says that requests are under way.
func (s *shorts) busy() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0
}

// cancel ends the contexts of all requests: nobody waits for their answers any more.
func (s *shorts) cancel() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, st := range s.streams {
		s.drop(id, st)
	}
}

// drop ends a stream that nobody waits for. Its handler, if it runs, takes it out of the
// map. The caller holds s.mu.
func (s *shorts) drop(id uint32, st *shortStream) {
	if st.cancel != nil {
		st.cancel()
		return
	}
	s.awaited -= st.length
	delete(s.streams, id)
	s.signal()
}

// signal tells finish that no request is left. The caller holds s.mu.
func (s *shorts) signal() {
	if s.none != nil && len(s.streams) == 0 {
		close(s.none)
		s.none = nil
	}
}

// finish waits for the requests that have begun, whose clients wait for their answers, and
// takes no others. read has what the clients send meanwhile read: bodies, and windows for
// the answers.
func (s *shorts) finish(read func()) {
	if s == nil {
		return
	}
	if none := s.leaveOff(); none != nil {
		read()
		<-none
	}
	s.mu.Lock()
	s.closed = true
	if s.overdue != nil {
		s.overdue.Stop()
	}
	s.mu.Unlock()
	s.handlers.Wait()
}

// leaveOff has nothing taken any more. It returns what is closed when nothing is left, or nil
// if that is so already.
func (s *shorts) leaveOff() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	if len(s.streams) == 0 {
		return nil
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	return s.none
}

// reset is told that the client wants no answer to a request any more.
func (s *shorts) reset(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[id]; st != nil {
		s.drop(id, st)
	}
}

// refuse resets a stream because of what its client has sent, and ends the request. A client
// that does not even read what it is sent is not told.
func (s *shorts) refuse(id, code uint32) {
	if s.reset(id); s.conn.queue.blocked() {
		s.conn.flow.reset(id)
		return
	}
	s.conn.resetStream(id, code)
}

// guard ends the connection, and serving beside package http2 for good, when this code has
// panicked. It must be deferred.
func (s *shorts) guard() {
	if p := recover(); p != nil {
		_ = s.conn.delivery.panicked(p) // which logs it
		_ = s.conn.queue.conn.Close()   // who reads finds out
	}
}

// foreign says that package http2 has never heard of a stream that was begun, or not in this session. Streams with
// even numbers are none that a client begins.
func (s *shorts) foreign(id uint32) bool { return id%2 == 1 && (id > s.passed || id <= s.before) }

// goAway has package http2 tell the client to go away, as an answer asked for it.
func (s *shorts) goAway() {
	s.mu.Lock()
	s.leave = true
	s.mu.Unlock()
	s.conn.flow.wake()
}

// asked says once that goAway was called.
func (s *shorts) asked() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	leave := s.leave
	s.leave = false
	return leave
}
