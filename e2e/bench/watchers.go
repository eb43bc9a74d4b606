package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// measureWatchers measures the server's memory for each of 5,000 watchers, with a connection each (both protocols) and
// on shared connections, and checks that each watcher receives all events.
func measureWatchers(e *env) error {
	for _, variant := range []struct {
		name         string
		http2        bool
		perTransport int
	}{
		{"a connection each, HTTP/1.1", false, 1},
		{"a connection each, HTTP/2", true, 1},
		{"100 a connection, HTTP/2", true, 100},
	} {
		if !e.only.MatchString(variant.name) {
			continue
		}
		if err := e.watchers(variant.name, variant.http2, variant.perTransport); err != nil {
			return fmt.Errorf("%s: %w", variant.name, err)
		}
	}
	return nil
}

func (e *env) watchers(name string, http2 bool, perTransport int) error {
	const watchers, events = 5000, 20
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	writer, err := newClient(s)
	if err != nil {
		return err
	}
	for i := range 500 { // a server that has done something
		if _, err := writer.do("POST", configMaps, "application/json", "", fmt.Appendf(nil, `{"metadata":{"name":"w%d"}}`, i)); err != nil {
			return err
		}
	}
	time.Sleep(3 * time.Second)
	before := resident(s.Pid())
	var got atomic.Int64
	var wg sync.WaitGroup
	var bodies []func()
	var transport *http.Transport
	for i := range watchers {
		if i%perTransport == 0 {
			if transport, err = newTransport(s, http2); err != nil {
				return err
			}
		}
		req, err := http.NewRequest(http.MethodGet, s.URL+configMaps+fmt.Sprintf("?watch=1&resourceVersion=500&allowWatchBookmarks=true&fieldSelector=metadata.name%%3De&timeoutSeconds=%d", 500+i%97), nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		req.Header.Set("User-Agent", "bench/v1.32.0 (linux/amd64) kubernetes/70d3cc9")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		bodies = append(bodies, func() { resp.Body.Close() })
		wg.Go(func() {
			r := bufio.NewReaderSize(resp.Body, 512)
			for n := 0; n < events; {
				line, err := r.ReadSlice('\n')
				if err != nil && err != bufio.ErrBufferFull {
					return
				}
				if bytes.HasSuffix(line, []byte{'\n'}) {
					n++
					got.Add(1)
				}
			}
		})
	}
	idle := settled(s.Pid())
	if err := profile(s, time.Second)(); err != nil {
		return err
	}
	began := time.Now()
	used := processorTime(s.Pid())
	for i := range events {
		method, path, body := "PATCH", configMaps+"/e", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, i)
		contentType := "application/merge-patch+json"
		if i == 0 {
			method, path, contentType, body = "POST", configMaps, "application/json", []byte(`{"metadata":{"name":"e"}}`)
		}
		if _, err := writer.do(method, path, contentType, "", body); err != nil {
			return err
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
	}
	took := time.Since(began)
	used = processorTime(s.Pid()) - used
	after := settled(s.Pid())
	e.report("5000 watchers, "+name, "%d of %d events in %v, cpu %v   a watcher: idle %.1f KB, after %.1f KB", got.Load(), watchers*events,
		took.Round(time.Millisecond), used.Round(time.Millisecond), (idle-before)*1024/watchers, (after-before)*1024/watchers)
	e.record.Add(record.Of("a watcher of 5,000", name+", idle", "KB", record.Lower, (idle-before)*1024/watchers))
	e.record.Add(record.Of("a watcher of 5,000", name+", after events", "KB", record.Lower, (after-before)*1024/watchers))
	for _, end := range bodies {
		end()
	}
	return nil
}

// newTransport returns a transport that opens one connection, or as many as its streams need.
func newTransport(s *harness.Server, http2 bool) (*http.Transport, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true, ForceAttemptHTTP2: http2, ReadBufferSize: 1024, WriteBufferSize: 1024}
	if !http2 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return t, nil
}

// settled waits until the resident memory stops falling, and returns it in MB.
func settled(pid int) float64 {
	low := resident(pid)
	for quiet := 0; quiet < 14; quiet++ {
		time.Sleep(500 * time.Millisecond)
		if now := resident(pid); now < low-1 {
			low, quiet = now, 0
		}
	}
	return low
}
