package conns_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// counting counts the writes to the connections it accepts.
type counting struct {
	net.Listener
	writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &counted{c, l}, err
}

type counted struct {
	net.Conn
	l *counting
}

func (c *counted) Write(p []byte) (int, error) {
	c.l.writes.Add(1)
	return c.Conn.Write(p)
}

// SyscallConn implements syscall.Conn.
func (c *counted) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return &countedRaw{raw, c.l}, err
}

// countedRaw counts what is done with the descriptor: writing, all of it.
type countedRaw struct {
	syscall.RawConn
	l *counting
}

func (c *countedRaw) Control(f func(uintptr)) error {
	c.l.writes.Add(1)
	return c.RawConn.Control(f)
}

func (c *countedRaw) Write(f func(uintptr) bool) error {
	return c.RawConn.Write(func(fd uintptr) bool {
		c.l.writes.Add(1)
		return f(fd)
	})
}

func certificate(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// site serves h over TLS and gives a client of one connection.
func site(t *testing.T, two bool, h http.HandlerFunc) (*counting, *http.Client, string) {
	return patientSite(t, two, 0, h)
}

// patientSite is a site on which what is held back waits for so long. On a busy machine
// it may wait in vain where that is the usual millisecond.
func patientSite(t *testing.T, two bool, wait time.Duration, h http.HandlerFunc) (*counting, *http.Client, string) {
	return siteOf(t, conns.NewDelivery(conns.DeliveryConfig{}), two, wait, h)
}

// siteOf is a site whose watches are sent as a Delivery says.
func siteOf(t *testing.T, d *conns.Delivery, two bool, wait time.Duration, h http.HandlerFunc) (*counting, *http.Client, string) {
	t.Helper()
	l, client, url, _ := shortSite(t, d, two, wait, h, conns.Short{})
	return l, client, url
}

// shortSite is a site that serves short requests beside package http2.
func shortSite(t testing.TB, d *conns.Delivery, two bool, wait time.Duration, h http.HandlerFunc, short conns.Short) (*counting, *http.Client, string, *http.Server) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counting{Listener: plain}
	hs := &http.Server{ConnContext: conns.ConnContext, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate(t)}, DynamicRecordSizingDisabled: true}}
	served := newAgain(tls.NewListener(conns.Listener{Listener: l, Delay: wait}, hs.TLSConfig))
	if err := conns.ServeHTTP2(hs, &http2.Server{MaxConcurrentStreams: 100, IdleTimeout: time.Minute}, d, short); err != nil {
		t.Fatal(err)
	}
	hijacker := conns.NewHijacker(d, served.hand)
	hs.Handler = hijacker.Handler(h)
	done := make(chan error, 1)
	go func() { done <- hs.Serve(served) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: two, DisableCompression: true}
	if !two {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		hs.Close()
		<-done
		hijacker.Close()
	})
	return l, &http.Client{Transport: transport}, "https://" + plain.Addr().String(), hs
}

// again is a listener that takes connections back.
type again struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newAgain(l net.Listener) *again {
	a := &again{Listener: l, conns: make(chan net.Conn), closed: make(chan struct{})}
	go func() { // until the listener is closed
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.hand(c)
		}
	}()
	return a
}

func (a *again) hand(c net.Conn) {
	select {
	case a.conns <- c:
	case <-a.closed:
		c.Close()
	}
}

func (a *again) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *again) Close() error {
	a.once.Do(func() { close(a.closed) })
	return a.Listener.Close()
}

// sized answers with n bytes, as told by the path, in pieces.
func sized(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Path[1:])
	w.Header().Set("Content-Length", strconv.Itoa(n))
	if f := conns.FromContext(r.Context()); f != nil {
		f.Cork()
		defer f.Uncork()
		if r.ProtoMajor == 1 {
			defer http.NewResponseController(w).Flush()
		}
	}
	body := pattern(n)
	for len(body) > 0 {
		k := min(len(body), 130_000)
		_, _ = w.Write(body[:k])
		body = body[k:]
	}
}

// pattern is n bytes in which no place looks like the one a record further on.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>14)
	}
	return b
}

// TestBulk: whatever its size, an answer arrives as it was sent, and in few pieces.
func TestBulk(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", two), func(t *testing.T) {
			l, client, url := patientSite(t, two, time.Minute, sized)
			if resp, err := client.Get(url + "/1"); err == nil { // connects
				resp.Body.Close()
			}
			for _, n := range []int{0, 1, 5_000, 16_383, 16_384, 32_768, 49_000, 65_536, 131_072, 490_000, 16_384 * 100} {
				before := l.writes.Load()
				resp, err := client.Get(fmt.Sprintf("%s/%d", url, n))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !bytes.Equal(got, pattern(n)) {
					t.Fatalf("%d bytes: got %d, %v", n, len(got), err)
				}
				// Windows and the pieces of the handler cost a few writes more.
				took, most := l.writes.Load()-before, int64(n/40_000+3)
				if took > most {
					t.Errorf("%d bytes took %d writes, want at most %d", n, took, most)
				}
			}
		})
	}
}

// TestFlushIsSentAtOnce: what a handler flushes does not wait for more.
func TestFlushIsSentAtOnce(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", two), func(t *testing.T) {
			next := make(chan int)
			_, client, url := site(t, two, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				control := http.NewResponseController(w)
				_ = control.Flush()
				for n := range next {
					_, _ = w.Write(pattern(n))
					_ = control.Flush()
				}
			})
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			defer close(next)
			// Also pieces that look as if more would follow: those are late, not lost.
			for _, n := range []int{10, 5_000, 9_000, 16_384, 20_000, 40_000} {
				next <- n
				got := make([]byte, n)
				if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, pattern(n)) {
					t.Fatalf("%d bytes: %v", n, err)
				}
			}
		})
	}
}

// pipes is a listener with one connection of a pipe.
type pipes struct {
	net.Listener
	c net.Conn
}

func (p pipes) Accept() (net.Conn, error) { return p.c, nil }

func TestHeldBytesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c, err := conns.Listener{Listener: pipes{c: near}}.Accept()
		if err != nil {
			t.Fatal(err)
		}
		bulk := []byte(strings.Repeat("x", 16_406))
		began := time.Now()
		if n, err := c.Write(bulk); n != len(bulk) || err != nil {
			t.Fatal(n, err)
		}
		got := make([]byte, len(bulk))
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began); late != time.Millisecond {
			t.Errorf("the held record came after %v", late)
		}
		// A delayed write that fails is told to the next.
		if _, err := c.Write(bulk); err != nil {
			t.Fatal(err)
		}
		far.Close()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if _, err := c.Write([]byte("y")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after a failure: %v", err)
		}
	})
}

// TestStreamsLeaveTogether: what streams of a connection bring after a call goes out
// together, and does not wait for one that never comes.
func TestStreamsLeaveTogether(t *testing.T) {
	const streams, size = 50, 300
	for _, missing := range []int{0, 1} {
		t.Run(fmt.Sprintf("missing=%d", missing), func(t *testing.T) {
			var conn atomic.Pointer[conns.Conn]
			var gates [streams]chan bool
			flushing := make(chan struct{}, streams)
			for i := range gates {
				gates[i] = make(chan bool)
			}
			wait := time.Minute
			if missing > 0 {
				wait = 0 // the usual
			}
			l, client, url := patientSite(t, true, wait, func(w http.ResponseWriter, r *http.Request) {
				j := conns.FromContext(r.Context())
				conn.Store(&j)
				control := http.NewResponseController(w)
				_ = control.Flush()
				i, _ := strconv.Atoi(r.URL.Path[1:])
				for range gates[i] {
					_, _ = w.Write(pattern(size))
					j.RemoveWriter()
					flushing <- struct{}{}
					_ = control.Flush()
				}
			})
			var bodies [streams]io.ReadCloser
			for i := range bodies {
				resp, err := client.Get(fmt.Sprintf("%s/%d", url, i))
				if err != nil {
					t.Fatal(err)
				}
				bodies[i] = resp.Body
				defer resp.Body.Close()
				defer close(gates[i])
			}
			const most, tries = 10, 3
			// round has all streams bring something, and says how many writes that took.
			round := func() (took int64) {
				before, j := l.writes.Load(), *conn.Load()
				for range streams + missing + 1 {
					j.AddWriter()
				}
				for _, gate := range gates {
					gate <- true
				}
				for range streams {
					<-flushing
				}
				j.RemoveWriter() // the last, when the others are about to flush
				for _, body := range bodies {
					got := make([]byte, size)
					if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, pattern(size)) {
						t.Fatal(err)
					}
				}
				for range missing {
					j.RemoveWriter()
				}
				return l.writes.Load() - before
			}
			for range 3 {
				took := round()
				// Who is held up on its way to package http2 comes after the others: on a busy machine, but not again and again.
				for try := 1; took > most && missing == 0 && try < tries; try++ {
					took = round()
				}
				if took > most && missing == 0 {
					t.Errorf("%d streams took %d writes, want at most %d", streams, took, most)
				}
			}
		})
	}
}
