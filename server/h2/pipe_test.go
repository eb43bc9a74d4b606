package h2_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

// piped is a client of a server in the same process, by a pipe: time may be that of synctest.
type piped struct {
	*raw
	frames chan string // as text, but data; closed at the end
	first  chan http2.FrameType
	writes *atomic.Int32

	// Read after a call of received.
	records      *records
	data, goAway int // number of the TLS record with the last DATA frame, and with the last GOAWAY frame
}

// records counts the TLS records that are read.
type records struct {
	conn io.Reader
	rest []byte
	n    int
}

func (r *records) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		b := make([]byte, 16<<10)
		n, err := r.conn.Read(b) // of one record
		if err != nil {
			return 0, err
		}
		r.n++
		r.rest = b[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes atomic.Int32
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func pipe(t *testing.T, s *h2.Server, greets bool, settings ...http2.Setting) *piped {
	t.Helper()
	near, far := net.Pipe()
	server := &counted{Conn: near}
	c := tls.Server(wire.NewSocket(server), &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2"}, SessionTicketsDisabled: true})
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	shaken := make(chan error, 1)
	go func() { shaken <- c.Handshake() }()
	if err := errors.Join(client.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	s.Serve(c)
	read := &records{conn: client}
	p := &piped{raw: &raw{TB: t, Framer: http2.NewFramer(client, read), conn: client}, records: read, frames: make(chan string, 10_000), first: make(chan http2.FrameType, 1), writes: &server.writes}
	p.enc = hpack.NewEncoder(&p.head)
	go p.listen()
	if greets {
		_, err := io.WriteString(client, http2.ClientPreface)
		p.must(err)
		p.must(p.WriteSettings(settings...))
	}
	return p
}

// listen notes frames until the connection ends.
func (p *piped) listen() {
	defer close(p.frames)
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		select {
		case p.first <- f.Header().Type:
		default:
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			p.goAway = p.records.n
			p.frames <- "GOAWAY " + f.ErrCode.String()
		case *http2.RSTStreamFrame:
			p.frames <- "RST " + f.ErrCode.String()
		case *http2.PingFrame:
			p.frames <- "PING " + string(f.Data[:])
		case *http2.DataFrame:
			p.data = p.records.n
			p.frames <- "DATA"
		case *http2.HeadersFrame:
			p.frames <- "HEADERS"
		}
	}
}

// received returns what the server has sent so far, and whether it has closed the connection.
func (p *piped) received() (list []string, ended bool) {
	synctest.Wait()
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				return list, true
			}
			list = append(list, f)
		default:
			return list, false
		}
	}
}

// wants fails unless the server has sent exactly that.
func (p *piped) wants(when string, ended bool, want ...string) {
	p.Helper()
	got, end := p.received()
	if strings.Join(got, ", ") != strings.Join(want, ", ") || end != ended {
		p.Errorf("%s: %v, ended %v; want %v, %v", when, got, end, want, ended)
	}
}
