package conns

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// padding stands for a package http2 that writes data frames in another way.
type padding struct{ net.Conn }

func (p padding) Write(b []byte) (int, error) {
	whole, rest := frames(b)
	var out []byte
	for _, f := range whole {
		if h := (*head)(f); h.kind() == dataFrame && h.length() > 0 {
			const padded = 8
			f = frame(dataFrame, h[4]|padded, h.stream(), append([]byte{0}, f[frameHead:]...))
		}
		out = append(out, f...)
	}
	if _, err := p.Conn.Write(append(out, rest...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestTokenIsNotSeen: where package http2 does not send tokens as it did, the first
// watch is broken off, and those that follow are sent by package http2.
func TestTokenIsNotSeen(t *testing.T) {
	var logged bytes.Buffer
	d := NewDelivery(DeliveryConfig{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	d.tokenPatience = 100 * time.Millisecond
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		s, err := d.Open(r.Context(), w)
		if s != nil {
			t.Error("taken over")
			s.Close(false)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "standard")
	}))
	srv.Listener = Listener{Listener: srv.Listener}
	srv.Config.ConnContext, srv.EnableHTTP2 = ConnContext, true
	if err := ServeHTTP2(srv.Config, &http2.Server{MaxConcurrentStreams: 100}, d, Short{}); err != nil {
		t.Fatal(err)
	}
	srv.Config.TLSNextProto[http2.NextProtoTLS] = func(hs *http.Server, c *tls.Conn, h http.Handler) {
		f := newHTTP2Conn(c, 100, d)
		(&http2.Server{}).ServeConn(padding{f}, &http2.ServeConnOpts{Handler: h, BaseConfig: hs, Context: context.WithValue(t.Context(), connKey{}, Conn(f))})
	}
	srv.TLS = srv.Config.TLSConfig
	srv.StartTLS()
	defer srv.Close()
	for round := range 3 {
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Fatal(resp.Proto)
		}
		if round == 0 && err == nil || round > 0 && (err != nil || string(got) != "standard") {
			t.Errorf("round %d: %q %v", round, got, err)
		}
	}
	if got := strings.Count(logged.String(), "reason="+ReasonHandshake); got != 1 {
		t.Errorf("%d lines in the log: %s", got, &logged)
	}
}

// TestConnPanics: a panic in what follows the frames ends the connection, and not the
// process.
func TestConnPanics(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	d := NewDelivery(DeliveryConfig{})
	c := newHTTP2Conn(tls.Server(newRecordConn(near, 0), &tls.Config{}), 100, d)
	c.flow.unsent = nil // to write to it panics
	c.reader.left, c.tracker.head = 0, head{}
	c.reader.buf, c.reader.have = frame(headersFrame, endHeaders, 1, []byte("12345")), frameHead+5
	if _, err := c.Read(make([]byte, 10)); err == nil {
		t.Error("no error")
	}
	if d.Direct() {
		t.Error("the direct way goes on")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

// TestStandardWindows: where nothing is to be taken over, package http2 is told of all
// windows as they are.
func TestStandardWindows(t *testing.T) {
	f := new(flowControl)
	f.init(100, false, func() { t.Error("there is more to tell") })
	for _, n := range []int64{1, 1 << 20, largestWindow} {
		if got := f.updated(0, n); got != n {
			t.Errorf("told of %d of %d", got, n)
		}
	}
	_ = f.opened(1)
	f.sent(1, 1<<20, false)
	if f.search(&http2Stream{}) {
		t.Error("a stream may be taken over")
	}
}
