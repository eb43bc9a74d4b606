package watches_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/wire"
)

// BenchmarkDeliver is the processor time of an event of 1 KB to a watch over HTTP/2, that of the client and of the write
// included, while a thousand events come in a second.
func BenchmarkDeliver(b *testing.B) {
	for _, c := range []struct{ watches, perConn int }{{25, 1}, {500, 1}, {500, 100}} {
		b.Run(fmt.Sprintf("watches=%d/per-connection=%d", c.watches, c.perConn), func(b *testing.B) { benchmarkDeliver(b, c.watches, c.perConn) })
	}
}

func benchmarkDeliver(b *testing.B, watches, perConn int) {
	s := newSite(b)
	url := s.serveHTTP2(b)
	var got atomic.Int64
	var readers sync.WaitGroup
	defer readers.Wait()
	var client *http.Client
	for i := range watches {
		if i%perConn == 0 {
			t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableCompression: true}
			defer t.CloseIdleConnections()
			client = &http.Client{Transport: t}
		}
		resp, err := client.Get(fmt.Sprintf("%s/api/v1/configmaps?watch=1&resourceVersion=%d", url, s.Cache.Revision()))
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		defer resp.Body.Close()
		readers.Go(func() {
			buf := make([]byte, 16<<10)
			for {
				n, err := resp.Body.Read(buf)
				got.Add(int64(bytes.Count(buf[:n], []byte("\n"))))
				if err != nil {
					return
				}
			}
		})
	}
	value := servertest.ConfigMap("a", "", strings.Repeat("x", 1000))
	before := used(b)
	for next := time.Now(); b.Loop(); next = next.Add(time.Millisecond) {
		time.Sleep(time.Until(next))
		s.Put("configmaps", "ns", "a", value)
	}
	for end := time.Now().Add(time.Minute); got.Load() < int64(b.N*watches) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := got.Load(); n != int64(b.N*watches) {
		b.Errorf("%d of %d events", n, b.N*watches)
	}
	b.ReportMetric(float64(used(b)-before)/float64(b.N*watches)/1e3, "cpu-µs/delivery")
}

// serveHTTP2 serves a site over TLS on HTTP/2.
func (s *site) serveHTTP2(b *testing.B) (url string) {
	b.Helper()
	donor := httptest.NewUnstartedServer(nil)
	donor.StartTLS()
	config := &tls.Config{Certificates: donor.TLS.Certificates, NextProtos: []string{"h2"}, DynamicRecordSizingDisabled: true}
	donor.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := h2.New(h2.Config{Handler: scoped(s.Verbs)})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := wire.Listener{Listener: l}.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				if t := tls.Server(c, config); t.HandshakeContext(b.Context()) == nil {
					server.Serve(t)
				}
			})
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		server.Close()
		running.Wait()
	})
	return "https://" + l.Addr().String()
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
