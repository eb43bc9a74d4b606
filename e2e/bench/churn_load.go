package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// churned is the result of one round.
type churned struct {
	writes             result        // acknowledged writes, and their latencies
	cpu, behind        time.Duration // of the server, and of its database, for a write with all its events
	lag50, lag99       time.Duration // from the acknowledgement to the arrival of an event, over all events
	due                int           // events: each acknowledged write at each watcher
	lost, twice, ended int
	failed             int     // writes that were answered with an error, or not at all
	peak               float64 // memory of the server, MB
}

func (r churned) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	text := fmt.Sprintf("%.0f writes/s   p50 %v   p99 %v   cpu of a write with its events %v + %v of the database   %d writes failed   peak %.0f MB",
		r.writes.rate, round(r.writes.p50), round(r.writes.p99), r.cpu, r.behind, r.failed, r.peak)
	if r.due > 0 {
		text += fmt.Sprintf("   lag p50 %v   p99 %v   %d events due, %d lost, %d twice   %d watches ended", round(r.lag50), round(r.lag99), r.due, r.lost, r.twice, r.ended)
	}
	return text
}

// churnOnce runs one round: the watchers open their watches and the clients their connections, the clients write for
// e.seconds, and the watchers read until no more events arrive.
func (e *env) churnOnce(l churnLoad, c *contestant, clients, round int) (r churned, err error) {
	in, err := e.enter(c, fmt.Sprintf("churn-%d-%d-%d", os.Getpid(), clients, round))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, in.end()) }()
	from, err := revision(in.client(false))
	if err != nil {
		return r, err
	}
	path := "/api/v1/namespaces/" + in.space + "/configmaps"
	in.watch.Path, in.watch.From, in.watch.HTTP2, in.watch.Watchers = path, from, overHTTP2, l.watchers
	watchers, err := in.watch.start(e.ctx)
	if err != nil {
		return r, err
	}
	defer watchers.stop()
	writers := make([]*churner, clients)
	for w := range writers {
		at := in.target
		if w%2 > 0 && in.second != nil {
			at = in.second
		}
		writers[w] = &churner{client: at.client(overHTTP2), path: path, number: w, updates: l.updates}
	}
	if err := connectAll(writers, "/api/v1/namespaces/"+in.space); err != nil {
		return r, err
	}
	in.findProcesses()
	forgetPeaks(in.pids)
	profiled := profile(in.server, e.seconds)
	used, behind := in.used(), in.usedBehind()
	r.writes, r.failed = churnAll(writers, e.seconds)
	if len(writers) == r.failed || r.writes.rate == 0 {
		return r, errTooSoon
	}
	acks := map[uint64]int64{}
	for _, w := range writers {
		for i, at := range w.acked {
			if at != 0 {
				acks[eventOf(w.number, i)] = at
			}
		}
	}
	seen, err := watchers.collect(len(acks))
	if err != nil {
		return r, err
	}
	r.cpu, r.behind = (in.used()-used)/time.Duration(len(acks)), (in.usedBehind()-behind)/time.Duration(len(acks))
	r.peak = peaks(in.pids)
	r.count(acks, seen)
	return r, profiled()
}

// findProcesses finds the processes of the server and of its database if they are on this machine.
func (in *churning) findProcesses() {
	in.lookBehind()
	if u := strings.LastIndexByte(in.url, ':'); len(in.pids) > 0 {
		port, _ := strconv.Atoi(in.url[u+1:])
		all := behind(port)
		in.pids, in.behind = descendants(all[0]), all[1:]
	}
	if in.second != nil {
		in.pids = append(in.pids, in.second.server.Pid())
	}
}

// count compares the acknowledged writes with those that each watcher saw.
func (r *churned) count(acks map[uint64]int64, seen churnSeen) {
	var lags []time.Duration
	for _, w := range seen.Watchers {
		met := make(map[uint64]bool, len(w))
		found := 0
		for _, a := range w {
			if met[a.Event] {
				r.twice++
				continue
			}
			met[a.Event] = true
			if at, ok := acks[a.Event]; ok {
				found++
				lags = append(lags, time.Duration(a.At-at))
			}
		}
		r.due += len(acks)
		r.lost += len(acks) - found
	}
	r.ended = seen.Ended
	if len(lags) > 0 {
		slices.Sort(lags)
		r.lag50, r.lag99 = lags[len(lags)/2], lags[len(lags)*99/100]
	}
}

// churner is a client. acked holds the time of each acknowledgement, by the number of the write; 0: the write failed.
type churner struct {
	*client
	path    string
	number  int
	updates int
	acked   []int64
	waited  []time.Duration
}

func eventOf(client, n int) uint64 { return uint64(client)<<32 | uint64(n) }

// write creates a ConfigMap, updates it with the next writes, and then creates another one.
func (c *churner) write(n int) error {
	name := fmt.Sprintf("c%d-%d", c.number, n/(1+c.updates))
	method, path := http.MethodPost, c.path
	if n%(1+c.updates) > 0 {
		method, path = http.MethodPut, c.path+"/"+name
	}
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"event":"@%d@","payload":%q}}`, name, eventOf(c.number, n), churnPayload)
	for {
		_, err := c.do(method, path, "application/json", "", body)
		if !answered(err, http.StatusTooManyRequests) {
			return err
		}
		time.Sleep(time.Second) // the usual Retry-After
	}
}

var churnPayload = strings.Repeat("x", churnBytes)

// connectAll opens the connections of all clients, at most 16 at a time.
func connectAll(all []*churner, path string) error {
	var wg sync.WaitGroup
	places := make(chan struct{}, 16)
	failed := make([]error, len(all))
	for i, c := range all {
		wg.Go(func() {
			places <- struct{}{}
			_, failed[i] = c.read(path)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// churnAll runs all clients for d.
func churnAll(all []*churner, d time.Duration) (r result, failed int) {
	var wg sync.WaitGroup
	var errs atomic.Int64
	began := time.Now()
	end := began.Add(d)
	for _, c := range all {
		wg.Go(func() {
			defer c.c.CloseIdleConnections()
			for n := 0; time.Now().Before(end); n++ {
				t := time.Now()
				err := c.write(n)
				now := time.Now()
				if err != nil {
					errs.Add(1)
					c.acked = append(c.acked, 0)
					time.Sleep(100 * time.Millisecond)
					continue
				}
				c.acked, c.waited = append(c.acked, now.UnixNano()), append(c.waited, now.Sub(t))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	var waited []time.Duration
	for _, c := range all {
		waited = append(waited, c.waited...)
	}
	return resultOf(waited, took), int(errs.Load())
}
