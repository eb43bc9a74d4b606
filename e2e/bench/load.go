package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// client is one connection of its own, as one program has it. It throws away what
// it reads: the processors are the server's.
type client struct {
	url  string
	c    *http.Client
	buf  []byte
	gzip bool // ask for compressed answers, and leave them so
}

// overHTTP2 is -http2. Programs made with client-go speak it, with all their
// requests on one connection.
var overHTTP2 bool

func newClient(s *harness.Server) (*client, error) { return newClientOver(s, overHTTP2) }

func newClientOver(s *harness.Server, h2 bool) (*client, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 1, DisableCompression: true,
		ForceAttemptHTTP2: h2,
	}
	if !h2 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &client{url: s.URL, c: &http.Client{Transport: t}, buf: make([]byte, 64<<10)}, nil
}

// drain reads to the end.
func (c *client) drain(r io.Reader) (total int64, err error) {
	for {
		n, err := r.Read(c.buf)
		total += int64(n)
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

// do sends one request and returns how many bytes came back.
func (c *client) do(method, path, contentType, accept string, body []byte) (int64, error) {
	resp, err := c.open(method, path, contentType, accept, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return c.drain(resp.Body)
}

// open sends one request. The caller closes the body of the answer.
func (c *client) open(method, path, contentType, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := c.c.Do(req)
	if err == nil && resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return resp, err
}

// result is a rate with its latencies.
type result struct {
	rate     float64
	p50, p99 time.Duration
	bytes    float64       // a second
	cpu      time.Duration // of the server, for one request
	own      time.Duration // of the clients, for one request
}

// alone is the rate that both processors would allow if nobody else used them.
func (r result) alone() float64 {
	return float64(runtime.NumCPU()) * float64(time.Second) / float64(max(1, r.cpu+r.own))
}

func (r result) String() string {
	return fmt.Sprintf("%8.0f/s   p50 %v   p99 %v   cpu %v + %v", r.rate, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond), r.cpu, r.own)
}

// drive runs fn from n clients for d and counts.
func drive(s *harness.Server, n int, d time.Duration, fn func(c *client, worker, i int) (int64, error)) (result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var bytes atomic.Int64
	var failed atomic.Pointer[error]
	profiled := profile(s, d)
	used, own := processorTime(s.Pid()), processorTime(os.Getpid())
	end := time.Now().Add(d)
	began := time.Now()
	for w := range n {
		c, err := newClient(s)
		if err != nil {
			return result{}, err
		}
		wg.Go(func() {
			var own []time.Duration
			for i := 0; time.Now().Before(end) && failed.Load() == nil; i++ {
				t := time.Now()
				got, err := fn(c, w, i)
				if err != nil {
					failed.Store(&err)
					return
				}
				own = append(own, time.Since(t))
				bytes.Add(got)
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(began)
	used, own = processorTime(s.Pid())-used, processorTime(os.Getpid())-own
	if err := profiled(); err != nil {
		return result{}, err
	}
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	slices.Sort(all)
	r := result{rate: float64(len(all)) / took.Seconds(), bytes: float64(bytes.Load()) / took.Seconds()}
	if len(all) > 0 {
		r.cpu = (used / time.Duration(len(all))).Round(time.Microsecond)
		r.own = (own / time.Duration(len(all))).Round(time.Microsecond)
		r.p50, r.p99 = all[len(all)/2], all[len(all)*99/100]
	}
	return r, nil
}

// profiles is the folder of -profiles, and how many are there.
var profiles struct {
	dir string
	n   int
}

// profile records what the processor does in the server for d. What it returns
// waits for the end.
func profile(s *harness.Server, d time.Duration) func() error {
	if profiles.dir == "" {
		return func() error { return nil }
	}
	profiles.n++
	done := make(chan error, 1)
	go func(n int) {
		done <- fetch(s, fmt.Sprintf("profile?seconds=%d", max(1, int(d.Seconds()))), fmt.Sprintf("cpu-%d.pb.gz", n))
	}(profiles.n)
	return func() error {
		if err := <-done; err != nil {
			return err
		}
		if err := fetch(s, "allocs", fmt.Sprintf("allocs-%d.pb.gz", profiles.n)); err != nil {
			return err
		}
		return fetch(s, "heap?gc=1", fmt.Sprintf("heap-%d.pb.gz", profiles.n))
	}
}

func fetch(s *harness.Server, what, name string) error {
	c, err := newClient(s)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodGet, c.url+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := c.c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %w", what, resp.StatusCode, err)
	}
	return os.WriteFile(filepath.Join(profiles.dir, name), data, 0o644)
}

func (e *env) start(args ...string) (*harness.Server, func(), error) {
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return nil, nil, err
	}
	store, err := e.newStore(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	if profiles.dir != "" {
		args = append(args, "--profiling")
	}
	s, err := harness.Start(e.ctx, harness.Options{Dir: dir, Store: store, Args: args})
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return s, func() { s.Kill(); os.RemoveAll(dir) }, nil
}
