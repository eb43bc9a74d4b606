package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/million"
	"github.com/rowlock/rowlock/e2e/bench/record"
)

const (
	allPods     = "/api/v1/pods"
	pagesAt     = 60 // a second
	pageWalkers = 8
	nodesAt     = 100
	nodeClients = 4
)

// walker pages through all Pods in a loop.
type walker struct{ next string }

func (w *walker) step(c *client) error {
	_, next, err := page(c, fmt.Sprintf("%s?limit=500&continue=%s", allPods, url.QueryEscape(w.next)))
	w.next = next
	return err
}

// pager reads pages at a steady rate until over returns true.
func (s *scaled) pager(over func() bool) (result, error) {
	clients, err := s.clients(pageWalkers, overHTTP2)
	if err != nil {
		return result{}, err
	}
	walkers := make([]walker, len(clients))
	return steady(clients, pagesAt, over, func(c *client, w, _ int) error { return walkers[w].step(c) })
}

// scalePages measures pages of 500 at a steady rate: their latency, and the server's share of the processors.
func scalePages(s *scaled) error {
	var cores []float64
	all, err := s.windows(func() (result, error) {
		profiled := profile(s.server, s.seconds)
		used, began := processorTime(s.server.Pid()), time.Now()
		r, err := s.pager(until(s.seconds))
		cores = append(cores, (processorTime(s.server.Pid())-used).Seconds()/time.Since(began).Seconds())
		if err == nil {
			err = profiled()
		}
		return r, err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("pages of 500 at %d/s", pagesAt)
	s.promised(record.Of("reads", name+", cores", "", record.Lower, cores...), 0.4)
	s.figure(record.Of("reads", name+", p50", "ms", record.Lower, of(all, p50)...))
	s.promised(record.Of("reads", name+", p99", "ms", record.Lower, of(all, p99)...), 25)
	s.figure(record.Of("reads", name+", rate", "1/s", record.Higher, of(all, func(r result) float64 { return r.rate })...))
	return nil
}

// scaleLabel measures a label selector that selects a tenth: the time to the first byte of a whole list, the time of
// a page of 500, and once the time of a whole list.
func scaleLabel(s *scaled) error {
	query := allPods + "?labelSelector=" + url.QueryEscape(million.TierLabel)
	clients, err := s.clients(2, true) // over HTTP/2, abandoning an answer does not close the connection
	if err != nil {
		return err
	}
	first, err := s.timed(clients[0], query) // makes the server build its label index
	if err != nil {
		return err
	}
	s.figure(record.Of("reads", "the very first label selector, first byte", "ms", record.Lower, first[0]))
	s.figure(record.Of("reads", "label selector of 10%, all of it", "s", record.Lower, first[1]/1000))
	for _, w := range []struct {
		name  string
		goal  float64
		query string
		whole bool
	}{
		{"label selector of 10%, first byte", 10, query, false}, {"label selector of 10% at resourceVersion 0, first byte", 0, query + "&resourceVersion=0", false},
		{"label selector of 10%, a page of 500", 0, query + "&limit=500", true},
	} {
		all, err := s.windows(func() (result, error) { return s.firstBytes(clients, w.query, w.whole) })
		if err != nil {
			return err
		}
		s.figure(record.Of("reads", w.name+", p50", "ms", record.Lower, of(all, p50)...))
		s.promised(record.Of("reads", w.name+", p99", "ms", record.Lower, of(all, p99)...), w.goal)
	}
	return nil
}

// timed reads a whole answer, and returns the milliseconds until the first byte and until the last.
func (s *scaled) timed(c *client, path string) ([2]float64, error) {
	began := time.Now()
	resp, err := c.open(http.MethodGet, path, "", "", nil)
	if err != nil {
		return [2]float64{}, err
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, c.buf[:1]); err != nil {
		return [2]float64{}, err
	}
	first := millis(time.Since(began))
	_, err = c.drain(resp.Body)
	return [2]float64{first, millis(time.Since(began))}, err
}

// firstBytes sends ten requests a second, and measures the time until the first byte of the body or, if whole, all
// of it. Otherwise it abandons the rest of the answer.
func (s *scaled) firstBytes(clients []*client, path string, whole bool) (result, error) {
	var mu sync.Mutex
	var all []time.Duration
	began := time.Now()
	_, err := steady(clients, 10, until(s.seconds), func(c *client, _, _ int) error {
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		began := time.Now()
		resp, err := c.openWith(ctx, path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.ReadFull(resp.Body, c.buf[:1]); err == nil && whole {
			_, err = c.drain(resp.Body)
		}
		took := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, took)
		return err
	})
	return resultOf(all, time.Since(began)), err
}

// openWith sends a GET that ctx cancels.
func (c *client) openWith(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.c.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("GET %s: %d", path, resp.StatusCode)
	}
	return resp, err
}

// onNode returns the list request of a kubelet.
func (s *scaled) onNode(i int) string {
	return allPods + "?fieldSelector=spec.nodeName%3D" + s.shape.Node(i%s.shape.Nodes())
}

// kubelets lists the Pods of nodes at a steady rate until over returns true.
func (s *scaled) kubelets(over func() bool) (result, error) { return s.kubeletsAt(over, "") }

// kubeletsAt is kubelets with additional query parameters.
func (s *scaled) kubeletsAt(over func() bool, more string) (result, error) {
	clients, err := s.clients(nodeClients, overHTTP2)
	if err != nil {
		return result{}, err
	}
	return steady(clients, nodesAt, over, func(c *client, w, i int) error {
		_, err := c.do("GET", s.onNode((i*len(clients)+w)*31)+more, "", "", nil)
		return err
	})
}

// scaleNode measures lists of the Pods of one node: consistent ones, for which the server reads the newest revision from
// PostgreSQL, and those from the cache (resourceVersion=0), which kubelets send first.
func scaleNode(s *scaled) error {
	for _, w := range []struct {
		name, more string
		goal       float64
	}{{"node-name selector", "", 3}, {"node-name selector at resourceVersion 0", "&resourceVersion=0", 0}} {
		all, err := s.windows(func() (result, error) { return s.kubeletsAt(until(s.seconds), w.more) })
		if err != nil {
			return err
		}
		s.figure(record.Of("reads", w.name+", p50", "ms", record.Lower, of(all, p50)...))
		s.promised(record.Of("reads", w.name+", p99", "ms", record.Lower, of(all, p99)...), w.goal)
	}
	return nil
}
