package h2

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// reader is the state of a connection that only its reading goroutine uses.
type reader struct {
	input      *input // nil while the connection is parked
	decoder    *hpack.Decoder
	block      block
	limiter    frameLimiter
	settled    bool                 // the client's first SETTINGS frame has arrived
	ignored    int                  // requests that arrived after GOAWAY
	recvWindow int64                // bytes of bodies that the client may still send on the connection
	consumed   int64                // bytes received since the last WINDOW_UPDATE
	state      *tls.ConnectionState // of all requests, as remote is; nil: not read yet
	remote     string
}

// input buffers and parses what a connection receives. Connections that are not parked borrow one.
type input struct {
	conn   *conn
	parks  bool // Read may return errPark
	buf    *bufio.Reader
	framer *http2.Framer
}

var inputs = sync.Pool{New: func() any {
	in := &input{}
	in.buf = bufio.NewReaderSize(in, 4<<10)
	in.framer = http2.NewFramer(nil, in.buf)
	in.framer.SetReuseFrames()
	in.framer.SetMaxReadFrameSize(frameMax)
	return in
}}

// errPark: the client has sent nothing for some time.
var errPark = errors.New("the connection is idle")

// Read implements io.Reader. An expired deadline only interrupts the read.
func (in *input) Read(p []byte) (int, error) {
	c := in.conn
	for {
		n, err := c.tls.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.closing.Load() {
			return n, err
		}
		if err := c.socket.Conn.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
		if in.parks {
			return 0, errPark
		}
	}
}

// begin sends the server's preface, and reads the client's.
func (c *conn) begin() {
	defer c.recoverPanic()
	c.mu.Lock()
	c.sendAndUnlock()
	c.acquireInput()
	var preface [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(c.input.buf, preface[:]); err != nil || string(preface[:]) != http2.ClientPreface {
		if err == nil {
			err = http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.end(err)
		return
	}
	c.serve()
}

func (c *conn) acquireInput() {
	c.input = inputs.Get().(*input)
	c.input.conn = c
	c.input.buf.Reset(c.input)
}

// releaseInput frees the state that a connection needs only while frames arrive. It is called between two frames.
func (c *conn) releaseInput() {
	in := c.input
	c.input = nil
	in.conn = nil
	in.buf.Reset(nil)
	inputs.Put(in)
	c.block.fields, c.state, c.remote = nil, nil, ""
}

// serve reads frames until the connection ends or is parked.
func (c *conn) serve() {
	for {
		err := c.awaitFrame()
		if err == errPark {
			c.releaseInput()
			c.server.running.Add(1) // until Resume's goroutine ends
			c.server.poller.Park(c.socket, c.id, c)
			return
		}
		if err == nil {
			err = c.readFrame()
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// Resume implements wire.Parked.
func (c *conn) Resume() {
	go func() {
		defer c.server.running.Done()
		defer c.recoverPanic()
		c.acquireInput()
		c.serve()
	}()
}

// awaitFrame waits for the first byte of a frame.
func (c *conn) awaitFrame() error {
	in := c.input
	if in.buf.Buffered() > 0 {
		return nil
	}
	c.waiting.Store(time.Now().UnixNano())
	in.parks = !c.block.open // input holds the state of an open block
	_, err := in.buf.Peek(1)
	in.parks = false
	c.waiting.Store(0)
	return err
}

// readFrame reads and processes a frame. Errors end the connection.
func (c *conn) readFrame() error {
	f, err := c.input.framer.ReadFrame()
	if err == nil {
		c.limiter.frame(f.Header(), c)
		err = c.process(f)
	}
	var bad http2.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return c.resetStream(bad.StreamID, bad.Code)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	return err
}
