package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/million"
	"github.com/rowlock/rowlock/e2e/bench/record"
)

const (
	writers       = 32
	leasesAt      = 100              // renewals a second in the background
	selectorsAt   = 2                // pages of the label selector a second in the background
	shortRetained = 30 * time.Second // so that compaction has something to do
)

// mold is the body of a Pod of the cluster, split around its name, to create copies.
type mold struct{ before, after []byte }

// molds returns molds of some Pods of the cluster.
func molds(shape million.Shape, n int) ([]mold, []string, error) {
	var all []mold
	var paths []string
	for i := range n {
		p := shape.Pod(i * 97 % shape.Pods)
		p.UID, p.ManagedFields, p.GenerateName = "", nil, ""
		p.Status.Reset()
		body, err := json.Marshal(p)
		if err != nil {
			return nil, nil, err
		}
		before, after, found := bytes.Cut(body, []byte(`"name":"`+p.Name+`"`))
		if !found {
			return nil, nil, fmt.Errorf("no name in %s", body)
		}
		all = append(all, mold{append(before, `"name":"`...), append([]byte(`"`), after...)})
		paths = append(paths, "/api/v1/namespaces/"+p.Namespace+"/pods")
	}
	return all, paths, nil
}

func (m mold) with(name string) []byte {
	return append(append(append(make([]byte, 0, len(m.before)+len(name)+len(m.after)), m.before...), name...), m.after...)
}

// creator creates Pods with new names.
type creator struct {
	molds []mold
	paths []string
	made  atomic.Int64
}

func (s *scaled) creator() (*creator, error) {
	m, paths, err := molds(s.shape, 64)
	return &creator{molds: m, paths: paths}, err
}

func (k *creator) one(c *client) error {
	n := int(k.made.Add(1))
	at := n % len(k.molds)
	_, err := c.do("POST", k.paths[at], "application/json", "", k.molds[at].with(fmt.Sprintf("new-%08d", n)))
	return err
}

// scaleCreate measures creates of Pods at half of the highest rate, during pages, selectors and renewals of leases,
// with compaction of the superseded versions.
func scaleCreate(s *scaled) error {
	if err := s.start(s.ctx, "--history-retention="+shortRetained.String()); err != nil {
		return err
	}
	// Measure the highest rate after the start: for seconds after readiness the server packs and the garbage collector builds its graph.
	if _, err := calm(s.server.Pid()); err != nil {
		return err
	}
	k, err := s.creator()
	if err != nil {
		return err
	}
	most, err := s.windows(func() (result, error) {
		return drive(s.server, writers, s.seconds, func(c *client, _, _ int) (int64, error) { return 0, k.one(c) })
	})
	if err != nil {
		return err
	}
	highest := record.Of("creates", "highest rate, 32 clients", "1/s", record.Higher, of(most, func(r result) float64 { return r.rate })...)
	s.figure(highest)
	s.figure(record.Of("creates", "highest rate, processor time of one", "ms", record.Lower, of(most, func(r result) float64 { return millis(r.cpu) })...))
	// The first label selector makes the server build its index, which scaleLabel measures.
	if err := s.indexed(); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		share float64
		goal  float64
	}{{"half", 0.5, 20}, {"a quarter", 0.25, 0}} { // the difference shows how much of the latency at half is queueing for two processors
		if err := s.createAmong(k, part.name+" of it among other requests", highest.Median*part.share, part.goal); err != nil {
			return err
		}
	}
	return nil
}

// createAmong measures creates at a steady rate under the background load. goal is for their p99, in ms; 0: none.
func (s *scaled) createAmong(k *creator, name string, perSecond, goal float64) error {
	var rounds []mixture
	all, err := s.windows(func() (result, error) {
		m, err := s.mixed(k, perSecond)
		rounds = append(rounds, m)
		return m.creates, err
	})
	if err != nil {
		return err
	}
	s.figure(record.Of("creates", name+", rate", "1/s", record.Higher, of(all, func(r result) float64 { return r.rate })...))
	s.figure(record.Of("creates", name+", p50", "ms", record.Lower, of(all, p50)...))
	s.promised(record.Of("creates", name+", p99", "ms", record.Lower, of(all, p99)...), goal)
	var server []float64
	for _, m := range rounds {
		server = append(server, m.cores)
	}
	s.figure(record.Of("creates", name+", processors of the server", "", record.Lower, server...))
	for i, other := range backgroundNames {
		var p []float64
		for _, m := range rounds {
			p = append(p, millis(m.background[i].p99))
		}
		s.figure(record.Of("creates", name+", meanwhile "+other+", p99", "ms", record.Lower, p...))
	}
	return nil
}

// mixture holds the measurements of creates and of the load during them.
type mixture struct {
	creates    result
	background [4]result
	cores      float64 // processors that the server took
}

var backgroundNames = [4]string{"pages of 500", "node-name selector", "label selector, a page of 500", "renewals of leases"}

// mixed creates objects at a steady rate and runs the background load for twice e.seconds.
func (s *scaled) mixed(k *creator, perSecond float64) (m mixture, err error) {
	over := until(2 * s.seconds)
	profiled := profile(s.server, s.seconds)
	used, began := processorTime(s.server.Pid()), time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(m.background)+1)
	for i, work := range [...]func(func() bool) (result, error){s.pager, s.kubelets, s.selectors, s.heartbeats} {
		wg.Go(func() { m.background[i], errs[i] = work(over) })
	}
	wg.Go(func() {
		clients, err := s.clients(writers, overHTTP2)
		if err == nil {
			m.creates, err = steady(clients, perSecond, over, func(c *client, _, _ int) error { return k.one(c) })
		}
		errs[len(m.background)] = err
	})
	wg.Wait()
	m.cores = (processorTime(s.server.Pid()) - used).Seconds() / time.Since(began).Seconds()
	return m, errors.Join(errors.Join(errs...), profiled())
}

// indexed makes the server build its label index, and waits until it is built.
func (s *scaled) indexed() error {
	_, err := s.selectors(until(time.Second))
	if err == nil {
		_, err = calm(s.server.Pid())
	}
	return err
}

// selectors lists pages by a label selector.
func (s *scaled) selectors(over func() bool) (result, error) {
	clients, err := s.clients(1, overHTTP2)
	if err != nil {
		return result{}, err
	}
	query := allPods + "?limit=500&labelSelector=" + url.QueryEscape(million.TierLabel)
	return steady(clients, selectorsAt, over, func(c *client, _, _ int) error {
		_, err := c.do("GET", query, "", "", nil)
		return err
	})
}

// heartbeats renews the leases of nodes.
func (s *scaled) heartbeats(over func() bool) (result, error) {
	clients, err := s.clients(4, overHTTP2)
	if err != nil {
		return result{}, err
	}
	return steady(clients, leasesAt, over, func(c *client, w, i int) error {
		return renew(c, nodeLeases+"/"+s.shape.Node((i*len(clients)+w)*31%s.shape.Nodes()))
	})
}

const nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
