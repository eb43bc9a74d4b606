package conns

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// trialClient is a client that is made of frames, so that it sees whatever the server sends.
type trialClient struct {
	framer  *http2.Framer
	head    bytes.Buffer
	hpacked *hpack.Encoder
	next    uint32 // stream
}

func newTrialClient(conn net.Conn) (*trialClient, error) {
	const largeWindow = 8 << 20                                                                            // without one, no stream is taken over
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http2.NextProtoTLS}}) // it is a pipe
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return nil, err
	}
	t := &trialClient{framer: http2.NewFramer(c, c), next: 1}
	t.hpacked = hpack.NewEncoder(&t.head)
	t.framer.ReadMetaHeaders = hpack.NewDecoder(hpackTable, nil)
	return t, errors.Join(t.framer.WriteSettings(), t.framer.WriteWindowUpdate(0, largeWindow))
}

// ask sends a request, with the parts of a body as they stand, and reads the answer.
func (t *trialClient) ask(path string, body ...string) (answer string, err error) {
	fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "self-test"}, {":path", path}}
	if len(body) > 0 {
		fields = append(fields, [2]string{"content-length", strconv.Itoa(len(strings.Join(body, "")))})
	}
	t.head.Reset()
	for _, f := range fields {
		if err := t.hpacked.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return "", err
		}
	}
	stream := t.next
	t.next += 2
	err = t.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: t.head.Bytes(), EndStream: len(body) == 0, EndHeaders: true})
	for i, part := range body {
		err = errors.Join(err, t.framer.WriteData(stream, i == len(body)-1, []byte(part)))
	}
	if err != nil {
		return "", err
	}
	return t.read(stream)
}

// tryHTTP2 asks for both answers, over one connection.
func tryHTTP2(conn net.Conn) error {
	c, err := newTrialClient(conn)
	if err != nil {
		return err
	}
	for _, path := range []string{trialDirect, trialStandard} {
		body, err := c.ask(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if body != trialWhole {
			return fmt.Errorf("%s was answered with %q", path, body)
		}
	}
	return nil
}

// tryShort has short requests served between others, which have the same tables of headers.
func tryShort(conn net.Conn) error {
	c, err := newTrialClient(conn)
	if err != nil {
		return err
	}
	for range 2 {
		if body, err := c.ask(trialStandard); err != nil || body != trialWhole {
			return fmt.Errorf("%s: %q %w", trialStandard, body, err)
		}
		if body, err := c.ask(trialShort, trialParts...); err != nil || body != trialWhole {
			return fmt.Errorf("%s was answered with %q %w", trialShort, body, err)
		}
		if body, err := c.ask(trialShort); err != nil || body != "" {
			return fmt.Errorf("%s without a body was answered with %q %w", trialShort, body, err)
		}
	}
	return nil
}

// read reads the answer on a stream to its end.
func (t *trialClient) read(stream uint32) (body string, err error) {
	for {
		frame, err := t.framer.ReadFrame()
		if err != nil {
			return body, err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if got := f.PseudoValue("status"); f.StreamID != stream || got != "200" {
				return body, fmt.Errorf("stream %d was answered with %s", f.StreamID, got)
			}
			if f.StreamEnded() {
				return body, nil
			}
		case *http2.DataFrame:
			if f.StreamID != stream {
				return body, fmt.Errorf("data of stream %d", f.StreamID)
			}
			body += string(f.Data())
			if f.StreamEnded() {
				return body, nil
			}
		case *http2.RSTStreamFrame:
			return body, fmt.Errorf("stream %d was reset: %s, after %q", f.StreamID, f.ErrCode, body)
		case *http2.GoAwayFrame:
			return body, fmt.Errorf("told to go away: %s", f.ErrCode)
		}
	}
}
