package conns

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// tryHTTP2 asks for both answers, over one connection. Its client is made of frames, so
// that it sees whatever the server sends.
func tryHTTP2(conn net.Conn) error {
	const largeWindow = 8 << 20                                                                            // without one, no stream is taken over
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http2.NextProtoTLS}}) // it is a pipe
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(c, c)
	var head bytes.Buffer
	hpacked := hpack.NewEncoder(&head)
	request := func(stream uint32, path string) error {
		head.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "self-test"}, {":path", path}} {
			if err := hpacked.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				return err
			}
		}
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
	}
	if err := errors.Join(framer.WriteSettings(), framer.WriteWindowUpdate(0, largeWindow)); err != nil {
		return err
	}
	for i, path := range []string{trialDirect, trialStandard} {
		stream := uint32(2*i + 1)
		if err := request(stream, path); err != nil {
			return err
		}
		body, err := readHTTP2(framer, stream)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if string(body) != trialWhole {
			return fmt.Errorf("%s was answered with %q", path, body)
		}
	}
	return nil
}

// readHTTP2 reads the body of a stream to its end.
func readHTTP2(framer *http2.Framer, stream uint32) (body []byte, err error) {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return body, err
		}
		switch f := frame.(type) {
		case *http2.DataFrame:
			if f.StreamID != stream {
				return body, fmt.Errorf("data of stream %d", f.StreamID)
			}
			body = append(body, f.Data()...)
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
