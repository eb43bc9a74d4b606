package verbs

import (
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/conns"
)

// wire is the body of an answer. Frames that come together go out together. It is
// for one goroutine, and must be closed.
type wire struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     *[]byte
	single  []byte    // a frame that may be all there is
	armed   time.Time // when the write deadline was set
	guard   *guard    // nil: not HTTP/2

	direct conns.Stream // past package net/http, once the answer has begun; nil: not so
	eager  bool         // direct does not wait for the client
	stuck  bool         // direct keeps something that the client did not take
	past   int64        // bytes written to direct
	whole  bool         // nothing is missing from the answer
}

// piece is how much of an answer is collected before it is written. While a client takes
// nothing, it and as much again are kept for it alone; large frames, which all share, are
// not copied into it whole.
const piece = 32 << 10

// pieces lends their memory.
var pieces = sync.Pool{New: func() any {
	b := make([]byte, 0, piece+piece/2)
	return &b
}}

func putPiece(b *[]byte) {
	if cap(*b) <= 2*piece {
		*b = (*b)[:0]
		pieces.Put(b)
	}
}

func newWire(w http.ResponseWriter, r *http.Request) *wire {
	o := &wire{w: w, control: http.NewResponseController(w)}
	if r.ProtoMajor == 2 {
		o.guard = &guard{control: o.control}
	}
	return o
}

func (o *wire) send(frame []byte) error {
	if o.direct != nil {
		return o.sendDirect(frame)
	}
	if len(frame) > piece {
		if pending := o.single != nil || o.buf != nil && len(*o.buf) > 0; pending {
			if err := o.write(true); err != nil {
				return err
			}
		}
		o.single = frame
		return o.write(true)
	}
	if o.single == nil && o.buf == nil {
		o.single = frame
		return nil
	}
	if o.buf == nil {
		o.buf = pieces.Get().(*[]byte)
		*o.buf = append((*o.buf)[:0], o.single...)
		o.single = nil
	}
	*o.buf = append(*o.buf, frame...)
	if len(*o.buf) < piece {
		return nil
	}
	return o.write(true)
}

func (o *wire) flush() error {
	if o.direct != nil {
		return o.flushDirect()
	}
	return o.write(false)
}

func (o *wire) full() bool { return o.stuck }

// defers: what a slow client does not take of a large frame would be kept for it alone.
// Its own goroutine sends that by and by.
func (o *wire) defers(frame []byte) bool {
	if o.eager && len(frame) > 2*piece {
		o.stuck = true
		return true
	}
	return false
}

// sendDirect adds to the next chunk, or sends several.
func (o *wire) sendDirect(frame []byte) error {
	for len(frame) > piece {
		if err := o.addDirect(frame[:piece]); err != nil {
			return err
		}
		frame = frame[piece:]
	}
	return o.addDirect(frame)
}

func (o *wire) addDirect(frame []byte) error {
	if o.buf == nil {
		o.buf = pieces.Get().(*[]byte)
		*o.buf = append((*o.buf)[:0], make([]byte, conns.Headroom)...)
	}
	*o.buf = append(*o.buf, frame...)
	if len(*o.buf) < piece {
		return nil
	}
	return o.flushDirect()
}

// flushDirect writes the chunk that has been collected.
func (o *wire) flushDirect() (err error) {
	switch {
	case o.buf != nil:
		o.past += int64(len(*o.buf) - conns.Headroom)
		if o.eager {
			var stuck bool
			stuck, err = o.direct.TryWrite(o.buf)
			o.stuck = o.stuck || stuck
		} else {
			o.stuck, err = false, o.direct.Write(o.buf)
		}
		putPiece(o.buf)
		o.buf = nil
	case o.stuck && !o.eager:
		o.stuck, err = false, o.direct.Flush()
	}
	if err != nil {
		return errGone
	}
	return nil
}

// write puts what was collected on the wire. more says that the buffer is still needed.
func (o *wire) write(more bool) error {
	data := o.single
	if data == nil && o.buf != nil {
		data = *o.buf
	}
	o.begin()
	var err error
	if len(data) > 0 {
		_, err = o.w.Write(data)
	}
	if err == nil {
		err = o.control.Flush()
	}
	if o.guard != nil {
		o.guard.end()
	}
	o.single = nil
	if o.buf != nil {
		*o.buf = (*o.buf)[:0]
		if !more || err != nil {
			putPiece(o.buf)
			o.buf = nil
		}
	}
	if err != nil {
		return errGone
	}
	return nil
}

// count tells those around a writer what was written past them.
func count(w http.ResponseWriter, bytes int64) {
	for w != nil {
		if c, ok := w.(interface{ Count(bytes int64) }); ok {
			c.Count(bytes)
			return
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}

// begin bounds how long a write may take.
func (o *wire) begin() {
	now := time.Now()
	if o.guard != nil {
		o.guard.begin(now)
	} else if now.Sub(o.armed) > writeFor/4 {
		_ = o.control.SetWriteDeadline(now.Add(writeFor)) // writers that know no deadlines are those of tests
		o.armed = now
	}
}

// close must be called before the handler returns.
func (o *wire) close() {
	if o.direct != nil {
		o.direct.Close(o.whole)
		count(o.w, o.past)
	}
	if o.guard != nil {
		o.guard.close()
	}
}

// guard ends a stream of HTTP/2 whose client takes nothing. Its deadlines will not
// do: they end streams that have nothing to write as well, and setting one for each
// write costs more than the write.
type guard struct {
	control *http.ResponseController

	mu     sync.Mutex
	timer  *time.Timer
	ticks  bool      // the timer will call look
	since  time.Time // when the write under way began; zero for none
	closed bool
}

func (g *guard) begin(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = now
	switch {
	case g.timer == nil:
		g.timer = time.AfterFunc(writeFor, g.look)
	case !g.ticks:
		g.timer.Reset(writeFor)
	}
	g.ticks = true
}

func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Time{}
}

func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ticks = false
	if g.closed || g.since.IsZero() {
		return // the next write sets the timer again
	}
	if left := writeFor - time.Since(g.since); left > 0 {
		g.ticks = true
		g.timer.Reset(left)
		return
	}
	_ = g.control.SetWriteDeadline(time.Unix(1, 0)) // it has passed: the stream ends
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
}
