package conns

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// newShortConn is a connection whose frames are looked at, with short requests.
func newShortConn(t *testing.T, h2 *http2.Server) (*HTTP2Conn, *Delivery) {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	d := NewDelivery(DeliveryConfig{})
	c := newHTTP2Conn(tls.Server(newRecordConn(near, 0), &tls.Config{}), 100, d)
	c.shorts = newShorts(context.Background(), c, Short{Is: func(string, string) bool { return true }}, h2, &http.Server{}, http.NotFoundHandler())
	c.reader.shorts, c.reader.left = c.shorts, 0
	c.flow.updated(0, 8<<20)
	c.coalescer.out = func(p []byte) (int, error) { return len(p), nil }
	return c, d
}

// waitsFor begins a short request with a body of 100 bytes.
func (c *HTTP2Conn) waitsFor(t *testing.T, id uint32) *shortStream {
	st := &shortStream{shorts: c.shorts, length: 100, room: 1 << 20}
	st.conn, st.id = c, id
	if !c.flow.take(&st.http2Stream) {
		t.Fatal("not taken")
	}
	c.shorts.streams[id] = st
	return st
}

// pausing is a source that is interrupted in the middle.
type pausing struct {
	parts [][]byte
	pause func()
}

func (p *pausing) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	if len(p.parts[0]) == 0 {
		p.parts = p.parts[1:]
		p.pause()
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, p.parts[0])
	p.parts[0] = p.parts[0][n:]
	return n, nil
}

// TestPartOfABody: when a request is given up while a part of its body is being read, what
// follows is read from where it begins.
func TestPartOfABody(t *testing.T) {
	c, _ := newShortConn(t, &http2.Server{})
	c.waitsFor(t, 3)
	c.shorts.passed = 5 // package http2 has a newer one, and is told of the rest
	body, ping := frame(dataFrame, 0, 3, bytes.Repeat([]byte{9}, 50)), frame(pingFrame, 0, 0, make([]byte, 8))
	source := &pausing{parts: [][]byte{body[:frameHead+20], append(slices.Clone(body[frameHead+20:]), ping...)}, pause: func() { c.shorts.reset(3) }}
	var got []byte
	for {
		p := make([]byte, 100)
		n, err := c.reader.read(source, &c.flow, p)
		if got = append(got, p[:n]...); err == io.EOF {
			break
		}
	}
	if want := append(body, ping...); !bytes.Equal(got, want) {
		t.Errorf("%x\nfor %x", got, want)
	}
}

// TestRefusedInBetween: of streams before one that is served beside package http2, those are
// refused that package http2 will not look at any more, so that their clients send them again.
func TestRefusedInBetween(t *testing.T) {
	c, _ := newShortConn(t, &http2.Server{})
	_ = c.flow.opened(1)
	_ = c.flow.opened(3)
	_ = c.flow.opened(5)
	c.waitsFor(t, 7)
	_ = c.flow.opened(9)
	goAway := frame(goAwayFrame, 0, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0})
	for i := range goAway { // in two writes, wherever it is cut
		p := c.corrected(slices.Clone(goAway[:i]))
		c.track(p)
		p = append(slices.Clone(p), c.corrected(append(c.partial, goAway[i:]...))...)
		if got := binary.BigEndian.Uint32(p[frameHead:]); got != 7 {
			t.Errorf("the last stream is %d", got)
		}
		c.tracker, c.partial = frameTracker{}, nil
	}
	refused := map[uint32]uint32{}
	for _, f := range first(frames(*c.frames.take())) {
		refused[(*head)(f).stream()] = binary.BigEndian.Uint32(f[frameHead:])
	}
	if len(refused) != 2 || refused[3] != resetRefused || refused[5] != resetRefused {
		t.Errorf("refused: %v", refused)
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestBehind: a client is slow while more is being made for it, too.
func TestBehind(t *testing.T) {
	q := newSendQueue(nil, true)
	q.gather()
	if _, err := q.write([]byte("x")); err != nil || q.blocked() {
		t.Error("what is gathered was not sent yet")
	}
	q.gathering = false
	q.gather()
	if !q.blocked() {
		t.Error("what the client did not take is forgotten")
	}
	taken, _ := q.whenTaken()
	q.drop()
	select {
	case <-taken:
	default:
		t.Error("nobody is told that it was taken")
	}
}

// TestBodiesGrow: no more memory is taken for a body than twice what has come of it.
func TestBodiesGrow(t *testing.T) {
	st := &shortStream{length: shortBody}
	for n := 1; len(st.body) < shortBody; n = min(n, shortBody-len(st.body)) {
		st.add(make([]byte, n), false, n)
		if len(st.body) < 2 && cap(st.body) > 64 || cap(st.body) > 2*len(st.body) && len(st.body) > 64 || cap(st.body) > shortBody {
			t.Fatalf("%d bytes for %d", cap(st.body), len(st.body))
		}
		n += n / 2
	}
}

// A body that has come is handed over as it lies in memory, once; one that is not whole, is begun or
// is too long is there to be read.
func TestWholeBody(t *testing.T) {
	cut := errors.New("cut")
	for _, tc := range []struct {
		name        string
		end         error
		read, limit int
		whole       bool
	}{
		{"whole", io.EOF, 0, 5, true}, {"cut", cut, 0, 5, false}, {"begun", io.EOF, 1, 5, false}, {"too long", io.EOF, 0, 4, false},
	} {
		memory := []byte("01234")
		b := &wholeBody{left: memory, end: tc.end}
		if n, err := b.Read(make([]byte, tc.read)); n != tc.read || err != nil {
			t.Errorf("%s: %d, %v", tc.name, n, err)
		}
		got, ok := b.Whole(int64(tc.limit))
		rest, err := io.ReadAll(b)
		if errors.Is(tc.end, io.EOF) != (err == nil) {
			t.Errorf("%s: %v", tc.name, err)
		}
		switch {
		case ok != tc.whole:
			t.Errorf("%s: handed over %v", tc.name, ok)
		case ok && (&got[0] != &memory[0] || len(got) != len(memory) || len(rest) > 0):
			t.Errorf("%s: %q, and then %q", tc.name, got, rest)
		case !ok && string(rest) != "01234"[tc.read:]:
			t.Errorf("%s: %q", tc.name, rest)
		}
	}
}

// TestShortAsMany: no more requests run than package http2 would serve.
func TestShortAsMany(t *testing.T) {
	for _, c := range []struct{ most, want int }{{0, shortMax}, {3, 3}, {100, shortMax}} {
		if conn, _ := newShortConn(t, &http2.Server{MaxConcurrentStreams: uint32(c.most)}); conn.shorts.most != c.want {
			t.Errorf("%d, want %d", conn.shorts.most, c.want)
		}
	}
}

// TestShortPanics: a panic of the code beside package http2, in whatever goroutine, ends its
// connection, and not the process.
func TestShortPanics(t *testing.T) {
	c, d := newShortConn(t, &http2.Server{})
	c.waitsFor(t, 3)
	c.shorts.streams[5] = nil // which panics whoever looks at it
	c.shorts.late()
	if d.Direct() {
		t.Error("the direct way goes on")
	}
	if _, err := c.queue.conn.Write([]byte("x")); err == nil {
		t.Error("the connection goes on")
	}
}

// TestWindowsOverflow: a window that becomes larger than one may be ends what it is of.
func TestWindowsOverflow(t *testing.T) {
	c, _ := newShortConn(t, &http2.Server{})
	c.waitsFor(t, 3)
	var sent []byte
	c.coalescer.out = func(p []byte) (int, error) { sent = append(sent, p...); return len(p), nil }
	read := func(p []byte) (got []byte) {
		b := make([]byte, 100)
		n, _ := c.reader.read(bytes.NewReader(p), &c.flow, b)
		return b[:n]
	}
	if got := read(update(3, largestWindow)); len(got) > 0 {
		t.Errorf("package http2 is told of %x", got)
	}
	if want := frame(resetFrame, 0, 3, []byte{0, 0, 0, resetFlow}); !bytes.Equal(sent, want) {
		t.Errorf("the client is told %x", sent)
	}
	if got, one := read(update(0, largestWindow)), update(0, largestWindow); !bytes.Equal(got, append(one, one...)) {
		t.Errorf("package http2 is told of %x", got)
	}
}
