package h2

import (
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

// body is the body of a request. All but stream are guarded by conn.mu.
type body struct {
	stream   *Stream
	buf      []byte // what has come and was not read
	from     int    // of buf: where that begins
	read     bool   // something was
	ended    bool   // nothing more comes
	err      error  // then; io.EOF: it is whole
	expects  bool   // the client waits to hear that it is wanted
	deadline *time.Timer
}

// addLocked adds a part of it.
func (b *body) addLocked(part []byte) {
	if b.ended || len(part) == 0 {
		return
	}
	if b.from > 0 && len(b.buf)+len(part) > cap(b.buf) {
		b.buf = b.buf[:copy(b.buf, b.buf[b.from:])]
		b.from = 0
	}
	b.buf = append(b.buf, part...)
	b.stream.signalLocked()
}

// endLocked says that nothing more comes: because of an error, or as it is whole.
func (b *body) endLocked(err error) {
	if b.ended {
		return
	}
	if b.ended, b.err = true, err; err == nil {
		b.err = io.EOF
	}
	if b.deadline != nil {
		b.deadline.Stop() // it would keep the request until then
	}
	b.stream.signalLocked()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	s := b.stream
	s.conn.mu.Lock()
	if b.expects && !b.ended && len(b.buf) == 0 {
		b.expects = false
		var h headers
		h.addStatus(http.StatusContinue)
		s.conn.headersLocked(s.id, &h, false)
		s.conn.sendAndUnlock()
		s.conn.mu.Lock()
	}
	for b.from == len(b.buf) {
		if b.ended {
			defer s.conn.mu.Unlock()
			return 0, b.err
		}
		s.waitLocked(nil)
	}
	n := copy(p, b.buf[b.from:])
	b.read = true
	if b.from += n; b.from == len(b.buf) {
		b.buf, b.from = b.buf[:0], 0
	}
	s.owed += int64(n)
	s.giveBackLocked()
	s.conn.sendAndUnlock()
	return n, nil
}

// giveBackLocked lets the client send more of a body when enough was read.
func (s *Stream) giveBackLocked() {
	if s.sent || s.ended || s.owed < bodyWindow/4 {
		return
	}
	n := s.owed
	s.room, s.owed = s.room+n, 0
	s.conn.framesLocked(func(f *http2.Framer) { _ = f.WriteWindowUpdate(s.id, uint32(n)) }) // a buffer takes everything
}

// wanted says that the client hears no more that the body is wanted: it has the header of the answer.
func (b *body) wanted() {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	b.expects = false
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	b.endLocked(http.ErrBodyReadAfterClose)
	b.buf, b.from = nil, 0
	return nil
}

// Whole hands a body of up to limit bytes over as it lies in memory, which nobody writes to any
// more. ok is false, and it is there to be read, if it is longer, or not all there.
func (b *body) Whole(limit int64) (whole []byte, ok bool) {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	if b.read || !b.ended || b.err != io.EOF || len(b.buf) == 0 || int64(len(b.buf)) > limit {
		return nil, false
	}
	whole, b.buf = b.buf, nil
	return whole, true
}

// setDeadline ends a body that has not come by then.
func (b *body) setDeadline(at time.Time) {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	if b.deadline != nil {
		b.deadline.Stop()
		b.deadline = nil
	}
	switch left := time.Until(at); {
	case at.IsZero() || b.ended:
	case left <= 0:
		b.endLocked(os.ErrDeadlineExceeded)
	default:
		b.deadline = time.AfterFunc(left, b.late)
	}
}

func (b *body) late() {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	b.endLocked(os.ErrDeadlineExceeded)
}
