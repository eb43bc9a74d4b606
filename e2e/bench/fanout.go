package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// Sizes of the fan-out. The first events are not measured.
const (
	fanWatchers = 500
	fanEvents   = 100
	fanWarm     = 10
	fanEvery    = 20 * time.Millisecond
)

// measureFanOut measures the time from the start of a write to its delivery.
func measureFanOut(e *env) error {
	for _, variant := range []struct {
		name string
		open func(*harness.Server) (collect, error)
	}{
		{"HTTP/1.1, a connection each", tapped(1, false)},
		{"HTTP/2, a connection each", tapped(1, true)},
		{"HTTP/2, 100 a connection", tapped(100, true)},
		{"clients of net/http, HTTP/1.1", goroutines(false, false)},
		{"clients of net/http, HTTP/2", goroutines(true, false)},
		{"clients of net/http, HTTP/2, one transport", goroutines(true, true)},
	} {
		if !e.only.MatchString(variant.name) {
			continue
		}
		err := e.fanOut(variant.name, variant.open)
		if errors.Is(err, errNoTaps) {
			e.report("500 watchers, 50 events/s, "+variant.name, "skipped: %v", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", variant.name, err)
		}
	}
	return nil
}

// errNoTaps: taps read many connections in one thread, by epoll.
var errNoTaps = errors.New("this measurement needs epoll, which only Linux has")

// collect waits for deliveries, first those of the warm-up, and returns their latencies.
type collect func() ([]time.Duration, error)

// tapped reads all watches in one thread.
func tapped(perConn int, h2 bool) func(*harness.Server) (collect, error) {
	return func(s *harness.Server) (collect, error) {
		t, err := openTaps(s, watchConfigMaps, fanWatchers, perConn, h2)
		if err != nil {
			return nil, err
		}
		return func() ([]time.Duration, error) {
			defer t.close()
			return t.read(fanWatchers * (fanWarm + fanEvents))
		}, nil
	}
}

// goroutines reads each watch in its own goroutine, as client-go does. The transport opens another connection when
// the others have no stream left.
func goroutines(h2, one bool) func(*harness.Server) (collect, error) {
	return func(s *harness.Server) (collect, error) {
		var last *client
		return eachInGoroutine(fanWatchers, watchConfigMaps, func() (c *client, err error) {
			if last == nil || !one {
				last, err = newClientOver(s, h2)
			}
			return last, err
		})
	}
}

// eachInGoroutine opens n watches, and reads each in its own goroutine.
func eachInGoroutine(n int, path string, open func() (*client, error)) (collect, error) {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range n {
		c, err := open()
		if err != nil {
			return nil, err
		}
		resp, err := c.open(http.MethodGet, path, "", "", nil)
		if err != nil {
			return nil, err
		}
		wg.Go(func() {
			defer resp.Body.Close()
			var own []time.Duration
			var rest []byte
			buf := make([]byte, 16<<10)
			for len(own) < fanWarm+fanEvents {
				n, err := resp.Body.Read(buf[copy(buf, rest):])
				own, rest = times(own, buf[:len(rest)+n], rest[:0])
				if err != nil {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	return func() ([]time.Duration, error) {
		wg.Wait()
		return all, nil
	}, nil
}

// sendEvents creates ConfigMaps that hold the time of their request, at a steady rate, and returns the latencies of
// the creates after the warm-up. It calls warm when the warm-up ends.
func sendEvents(c *client, path, prefix string, warm func()) (acks []time.Duration, err error) {
	for i := range fanWarm + fanEvents {
		if i == fanWarm {
			warm()
		}
		began := time.Now()
		body := fmt.Appendf(nil, `{"metadata":{"name":"%s%d"},"data":{"sent":"@%d@"}}`, prefix, i, began.UnixNano())
		if _, err := c.do("POST", path, "application/json", "", body); err != nil {
			return nil, err
		}
		acks = append(acks, time.Since(began))
		time.Sleep(time.Until(began.Add(fanEvery)))
	}
	return acks[fanWarm:], nil
}

func (e *env) fanOut(name string, open func(*harness.Server) (collect, error)) error {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	get, err := open(s)
	if err != nil {
		return err
	}
	before := resident(s.Pid())
	c, err := newClientOver(s, false)
	if err != nil {
		return err
	}
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { all, failed = get() })
	profiled := profile(s, fanEvents*fanEvery)
	var used, own time.Duration
	acks, err := sendEvents(c, configMaps, "e", func() { used, own = processorTime(s.Pid()), processorTime(os.Getpid()) })
	if err != nil {
		return err
	}
	wg.Wait()
	used, own = processorTime(s.Pid())-used, processorTime(os.Getpid())-own
	if err := profiled(); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if want := fanWatchers * (fanWarm + fanEvents); len(all) != want {
		return fmt.Errorf("%d of %d events arrived", len(all), want)
	}
	slices.Sort(all)
	slices.Sort(acks)
	e.report("500 watchers, 50 events/s, "+name, "p1 %v   p50 %v   p90 %v   p99 %v   acknowledged p50 %v   cpu of a delivery %v + %v   resident %.0f MB",
		tenths(all, 1), tenths(all, 50), tenths(all, 90), tenths(all, 99), tenths(acks, 50), used/(fanEvents*fanWatchers), own/(fanEvents*fanWatchers), before)
	return nil
}

// tenths returns a percentile of sorted times, rounded to 0.1 ms.
func tenths(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100].Round(100 * time.Microsecond)
}

const watchConfigMaps = configMaps + "?watch=1&resourceVersion=0"
