package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// The simulated month has the writes of a month, without the pauses: -churn writes of each Pod on average, at the
// highest rate. The server keeps superseded versions for monthRetained.
const (
	monthRetained = 10 * time.Second
	monthPatience = 30 * time.Minute
)

// scaleMonth measures whether compaction keeps up with a month of changes, and the size of the files after it.
func scaleMonth(s *scaled) error {
	if err := s.start(s.ctx, "--history-retention="+monthRetained.String()); err != nil {
		return err
	}
	writes := int(s.churn * float64(s.shape.Pods))
	began := time.Now()
	if err := s.churned(writes); err != nil {
		return err
	}
	took := time.Since(began)
	began = time.Now()
	behind, err := oldestPast(s.ctx, s.store)
	if err != nil {
		return err
	}
	at, err := weigh(s.ctx, s.store)
	if err != nil {
		return err
	}
	s.figure(record.Of("a month", fmt.Sprintf("writes, %.3g of each Pod", s.churn), "1/s", record.Higher, float64(writes)/took.Seconds()))
	s.figure(record.Of("a month", "compaction is behind at their end", "s", record.Lower, max(0, behind-monthRetained.Seconds())))
	s.figure(record.Of("a month", "files by live data at their end", "times", record.Lower, float64(at.size)/float64(at.live)))
	// The server renews its leases: versions that were superseded after the month may exist.
	for late := until(monthPatience); behind > time.Since(began).Seconds(); time.Sleep(time.Second) {
		if late() {
			return fmt.Errorf("rows that were superseded %.0f s ago are left after %v", behind, monthPatience)
		}
		if behind, err = oldestPast(s.ctx, s.store); err != nil {
			return err
		}
	}
	s.figure(record.Of("a month", "until the last of it is compacted", "s", record.Lower, time.Since(began).Seconds()))
	if at, err = weigh(s.ctx, s.store); err != nil {
		return err
	}
	s.promised(record.Of("a month", "files by live data afterwards", "times", record.Lower, float64(at.size)/float64(at.live)), 2)
	m, err := calm(s.server.Pid())
	if err != nil {
		return err
	}
	s.stored = float64(at.live) / (1 << 20)
	s.held("after a month", m)
	return nil
}

// churned sends so many writes: of ten, seven patch the status of a Pod, two renew a lease, and one replaces a Pod
// by a delete and a create.
func (s *scaled) churned(writes int) error {
	clients, err := s.clients(writers, overHTTP2)
	if err != nil {
		return err
	}
	m, paths, err := molds(s.shape, 64)
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1))
				if i > writes {
					return
				}
				if err := s.change(c, i, m, paths); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *scaled) change(c *client, i int, m []mold, paths []string) error {
	switch i % 10 {
	case 0: // replace a Pod
		at := i / 10 % len(m)
		name := fmt.Sprintf("month-%d", i)
		if _, err := c.do("POST", paths[at], "application/json", "", m[at].with(name)); err != nil {
			return err
		}
		_, err := c.do("DELETE", paths[at]+"/"+name+"?gracePeriodSeconds=0", "", "", nil)
		return err
	case 1, 2:
		return renew(c, nodeLeases+"/"+s.shape.Node(i*31%s.shape.Nodes()))
	}
	pod := i * 7907 % s.shape.Pods
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/status", s.shape.Namespace(s.shape.NamespaceOf(pod)), s.shape.PodName(pod))
	return patchStatus(c, path, "", i)
}
