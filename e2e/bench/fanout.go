package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// measureFanOut: 500 watchers, 100 events at 50 a second, from the start of the
// write to its delivery.
func measureFanOut(e *env) error {
	const watchers, events = 500, 100
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	ready := make(chan error, watchers)
	for range watchers {
		wg.Go(func() {
			own, err := watch(s, ready, events)
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		})
	}
	for range watchers {
		if err := <-ready; err != nil {
			return err
		}
	}
	before := resident(s.Pid())
	c, err := newClient(s)
	if err != nil {
		return err
	}
	for i := range events {
		next := time.Now().Add(20 * time.Millisecond)
		body := fmt.Appendf(nil, `{"metadata":{"name":"e%d"},"data":{"sent":"@%d@"}}`, i, time.Now().UnixNano())
		if _, err := c.do("POST", configMaps, "application/json", "", body); err != nil {
			return err
		}
		time.Sleep(time.Until(next))
	}
	wg.Wait()
	slices.Sort(all)
	if len(all) != watchers*events {
		return fmt.Errorf("%d of %d events arrived", len(all), watchers*events)
	}
	e.report("500 watchers, 50 events/s", "p50 %v   p99 %v   resident %.0f MB", all[len(all)/2], all[len(all)*99/100], before)
	return nil
}

func watch(s *harness.Server, ready chan<- error, events int) ([]time.Duration, error) {
	c, err := newClient(s)
	if err != nil {
		ready <- err
		return nil, err
	}
	req, err := http.NewRequest(http.MethodGet, c.url+configMaps+"?watch=1&resourceVersion=0", nil)
	if err != nil {
		ready <- err
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := c.c.Do(req)
	ready <- err
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []time.Duration
	r := bufio.NewReader(resp.Body)
	for len(out) < events {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return out, err
		}
		now := time.Now().UnixNano()
		if parts := bytes.SplitN(line, []byte("@"), 3); len(parts) == 3 {
			if sent, err := strconv.ParseInt(string(parts[1]), 10, 64); err == nil {
				out = append(out, time.Duration(now-sent))
			}
		}
	}
	return out, nil
}
