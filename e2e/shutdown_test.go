package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestEndsWithIdleConnections stops a server with many client connections: used ones, new ones, and some
// without a handshake. None of the clients disconnects by itself.
func TestEndsWithIdleConnections(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", s.Port)
	const many = 600
	conns := make([]net.Conn, many)
	var dials errgroup.Group
	dials.SetLimit(16)
	for i := range conns {
		dials.Go(func() error {
			if i%10 == 0 {
				c, err := net.Dial("tcp", address)
				conns[i] = c
				return err
			}
			c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
			if err != nil {
				return err
			}
			conns[i] = c
			return ask(c, i%10 > 1)
		})
	}
	if err := dials.Wait(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, c := range conns {
			_ = c.Close() // the server hung up before
		}
	}()
	// Some are in the middle of the handshake when the server gets the signal.
	late := make(chan []net.Conn)
	go func() {
		var open []net.Conn
		for {
			c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
			if err != nil {
				late <- open
				return
			}
			open = append(open, c)
			_ = ask(c, false) // the server may hang up at any moment
		}
	}()
	began := time.Now()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	conns = append(conns, <-late...)
	t.Logf("ended in %s with %d idle connections", time.Since(began), many)
}

// ask starts HTTP/2 and, on request, sends a request and reads the
// answer to its end.
func ask(c net.Conn, request bool) error {
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil || !request {
		return err
	}
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: "/version"},
		{Name: "authorization", Value: "Bearer " + harness.AdminToken},
	} {
		if err := enc.WriteField(h); err != nil {
			return err
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		return err
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if frame.Header().StreamID == 1 && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			return nil
		}
	}
}

// TestEndsAfterWhatIsUnderWay stops a server while a request is being sent, by HTTP/2 and
// HTTP/1.1: the server waits for it.
func TestEndsAfterWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"HTTP/2.0", "HTTP/1.1"} {
		s := harness.StartT(t, harness.Options{})
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		transport := client.Transport.(*http.Transport)
		transport.ExpectContinueTimeout = time.Minute
		if version == "HTTP/1.1" {
			transport.ForceAttemptHTTP2, transport.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
		}
		body, rest := io.Pipe()
		awaited, ended := make(chan struct{}), make(chan error, 1)
		trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(awaited) }})
		req, err := http.NewRequestWithContext(trace, http.MethodPost, s.URL+configMaps, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Expect", "100-continue")
		go func() {
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
				if resp.Proto != version || resp.StatusCode != http.StatusCreated {
					err = fmt.Errorf("%s %s", resp.Proto, resp.Status)
				}
			}
			ended <- err
		}()
		select {
		case <-awaited:
		case err := <-ended:
			t.Fatalf("%s: the request: %v", version, err)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop() }()
		for refused := false; !refused; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
			if refused = err != nil; !refused {
				c.Close()
			}
		}
		time.Sleep(600 * time.Millisecond) // longer than idle connections are left alone
		if _, err := io.WriteString(rest, `{"metadata":{"name":"late"}}`); err != nil {
			t.Error(err)
		}
		rest.Close()
		if err := <-ended; err != nil {
			t.Errorf("%s: the request under way: %v", version, err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// TestWatchesOverHTTP1 sees that a connection of HTTP/1.1 serves on after its watch has
// ended, and that a watch ends whole when the server does.
func TestWatchesOverHTTP1(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"own", "standard"} {
		t.Run(way, func(t *testing.T) { endWatchesOverHTTP1(t, way) })
	}
}

func endWatchesOverHTTP1(t *testing.T, way string) {
	s := harness.StartT(t, harness.Options{Args: []string{"--http2=" + way}})
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}}
	defer client.CloseIdleConnections()
	get := func(path string) (resp *http.Response, reused bool) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		if resp, err = client.Do(req); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 {
			t.Fatalf("%s: %s %s", path, resp.Proto, resp.Status)
		}
		return resp, reused
	}
	for i, path := range []string{"/api/v1/namespaces?watch=1&timeoutSeconds=1", "/version", "/api/v1/namespaces?watch=1"} {
		resp, reused := get(path)
		if reused != (i > 0) {
			t.Errorf("%s: reused %v", path, reused)
		}
		in := bufio.NewReader(resp.Body)
		if i == 2 {
			// The server ends no watch before it has begun: it has sent what there is.
			if _, err := in.Peek(1); err != nil {
				t.Fatal(err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		body, err := io.ReadAll(in)
		resp.Body.Close()
		if err != nil || !bytes.HasSuffix(body, []byte("}\n")) && i != 1 {
			t.Errorf("%s: %v after %.200q", path, err, body)
		}
	}
}
