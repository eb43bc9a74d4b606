package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// client has one connection. It discards the answers, to leave the processors to the server.
type client struct {
	url   string
	token string
	c     *http.Client
	buf   []byte
	gzip  bool // accept compressed answers, and do not decompress them
}

// overHTTP2 is the flag -http2. client-go uses HTTP/2, with all requests of a program on one connection.
var overHTTP2 bool

func newClient(s *harness.Server) (*client, error) { return newClientOver(s, overHTTP2) }

func newClientOver(s *harness.Server, h2 bool) (*client, error) {
	t, err := own(s)
	if err != nil {
		return nil, err
	}
	return t.client(h2), nil
}

// drain reads and discards the rest of a body, and returns its size.
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

// do sends a request, and returns the size of the answer.
func (c *client) do(method, path, contentType, accept string, body []byte) (int64, error) {
	resp, err := c.open(method, path, contentType, accept, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return c.drain(resp.Body)
}

// open sends a request. The caller closes the body of the answer.
func (c *client) open(method, path, contentType, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
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
		return nil, &refusal{what: method + " " + path, code: resp.StatusCode, text: text}
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
	behind   time.Duration // of the database, for one request, if the bench started it
}

// alone returns the rate that the processor times allow if nothing else runs.
func (r result) alone() float64 {
	return float64(runtime.NumCPU()) * float64(time.Second) / float64(max(1, r.cpu+r.own+r.behind))
}

func (r result) String() string {
	text := fmt.Sprintf("%8.0f/s   p50 %v   p99 %v   cpu %v + %v", r.rate, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond), r.cpu, r.own)
	if r.behind > 0 {
		text += fmt.Sprintf(" + %v of the database", r.behind)
	}
	return text
}

// drive calls fn from n clients for d.
func drive(s *harness.Server, n int, d time.Duration, fn func(c *client, worker, i int) (int64, error)) (result, error) {
	t, err := own(s)
	if err != nil {
		return result{}, err
	}
	if all := behind(s.Port); len(all) > 1 {
		t.behind = all[1:]
	}
	return t.drive(n, d, fn)
}

// profiles holds the folder of -profiles and the number of profiles in it.
var profiles struct {
	dir string
	n   int
}

// profile starts a processor profile of the server that lasts d. The returned function waits for it. It does nothing
// for the servers of -against (nil).
func profile(s *harness.Server, d time.Duration) func() error {
	if profiles.dir == "" || s == nil {
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
