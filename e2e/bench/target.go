package main

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// target is a server to measure: one that the bench started, or any other that serves the API.
type target struct {
	name   string
	url    string
	tls    *tls.Config
	token  string          // "": the certificate in tls is the credential
	pids   []int           // processes whose time counts; empty: the process of server
	server *harness.Server // nil: not started by the bench
	behind []int           // the processes of its database, whose time is reported separately
}

// own returns the target of a server that the bench started.
func own(s *harness.Server) (*target, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	return &target{name: "rowlock", url: s.URL, tls: &tls.Config{RootCAs: pool}, token: harness.AdminToken, server: s}, nil
}

// client returns a client that connects with its first request; its requests share one connection.
func (t *target) client(h2 bool) *client {
	transport := &http.Transport{TLSClientConfig: t.tls.Clone(), MaxIdleConnsPerHost: 1, DisableCompression: true, ForceAttemptHTTP2: h2}
	if !h2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &client{url: t.url, token: t.token, c: &http.Client{Transport: transport}, buf: make([]byte, 64<<10)}
}

// used returns the processor time of all processes of the target so far.
func (t *target) used() time.Duration {
	pids := t.pids
	if pids == nil && t.server != nil {
		pids = []int{t.server.Pid()}
	}
	return processorTimes(pids)
}

// usedBehind returns the processor time of its database so far.
func (t *target) usedBehind() (sum time.Duration) {
	for _, pid := range t.behind {
		for _, pid := range descendants(pid) {
			own, ended := processorTimeWithEnded(pid)
			sum += own + ended
		}
	}
	return sum
}

// drive calls fn from n clients for d.
func (t *target) drive(n int, d time.Duration, fn func(c *client, worker, i int) (int64, error)) (result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var bytes atomic.Int64
	var failed atomic.Pointer[error]
	profiled := profile(t.server, d)
	used, own, behind := t.used(), processorTime(os.Getpid()), t.usedBehind()
	began := time.Now()
	end := began.Add(d)
	for w := range n {
		c := t.client(overHTTP2)
		wg.Go(func() {
			defer c.c.CloseIdleConnections()
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
	used, own, behind = t.used()-used, processorTime(os.Getpid())-own, t.usedBehind()-behind
	if err := profiled(); err != nil {
		return result{}, err
	}
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	r := resultOf(all, took)
	r.bytes = float64(bytes.Load()) / took.Seconds()
	if len(all) > 0 {
		r.cpu = (used / time.Duration(len(all))).Round(time.Microsecond)
		r.own = (own / time.Duration(len(all))).Round(time.Microsecond)
		r.behind = (behind / time.Duration(len(all))).Round(time.Microsecond)
	}
	return r, nil
}

// resultOf summarizes the latencies of requests in a time.
func resultOf(all []time.Duration, took time.Duration) result {
	r := result{rate: float64(len(all)) / took.Seconds()}
	if len(all) > 0 {
		slices.Sort(all)
		r.p50, r.p99 = all[len(all)/2], all[len(all)*99/100]
	}
	return r
}

// errTooSoon: a measurement ended before its first answer.
var errTooSoon = errors.New("the server answered no request during the measurement; raise -seconds")

// steady calls fn at a steady rate from all clients together until over returns true. A call's latency counts
// from when it was due: a client that waits for a slow one makes the next ones late.
func steady(clients []*client, perSecond float64, over func() bool, fn func(c *client, worker, i int) error) (result, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var stop atomic.Bool
	began := time.Now()
	for w, c := range clients {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				due := began.Add(time.Duration(float64(i*len(clients)+w) / perSecond * float64(time.Second)))
				sleepUntil(due)
				err := fn(c, w, i)
				mu.Lock()
				all = append(all, time.Since(due))
				if err != nil {
					failed = err
					stop.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	for !stop.Load() && !over() {
		time.Sleep(50 * time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	if failed == nil && len(all) == 0 {
		failed = errTooSoon
	}
	return resultOf(all, time.Since(began)), failed
}

// until returns a function that reports whether d has passed since the call of until.
func until(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}
