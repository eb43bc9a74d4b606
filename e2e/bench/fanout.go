package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// measureFanOut: 500 watchers, each with a connection of its own, and 100 events at
// 50 a second, from the start of the write to its delivery.
func measureFanOut(e *env) error {
	const watchers, events, warm = 500, 100, 10
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
			r, err := watch(s)
			ready <- err
			if err != nil {
				return
			}
			defer r.Close()
			own := deliveries(r, warm+events)
			mu.Lock()
			all = append(all, own[min(warm, len(own)):]...)
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
	profiled := profile(s, events*20*time.Millisecond)
	var used, own time.Duration
	var acks []time.Duration
	for i := range warm + events {
		if i == warm {
			used, own = processorTime(s.Pid()), processorTime(os.Getpid())
		}
		began := time.Now()
		body := fmt.Appendf(nil, `{"metadata":{"name":"e%d"},"data":{"sent":"@%d@"}}`, i, began.UnixNano())
		if _, err := c.do("POST", configMaps, "application/json", "", body); err != nil {
			return err
		}
		acks = append(acks, time.Since(began))
		time.Sleep(time.Until(began.Add(20 * time.Millisecond)))
	}
	wg.Wait()
	used, own = processorTime(s.Pid())-used, processorTime(os.Getpid())-own
	if err := profiled(); err != nil {
		return err
	}
	slices.Sort(all)
	slices.Sort(acks)
	if len(all) != watchers*events {
		return fmt.Errorf("%d of %d events arrived", len(all), watchers*events)
	}
	e.report("500 watchers, 50 events/s", "p50 %v   p90 %v   p99 %v   acknowledged p50 %v   cpu of an event %v + %v   resident %.0f MB",
		all[len(all)/2], all[len(all)*9/10], all[len(all)*99/100], acks[len(acks)/2], used/events, own/events, before)
	return nil
}

const watchConfigMaps = configMaps + "?watch=1&resourceVersion=0"

// watch opens a watch and returns what comes by it, with the framing of HTTP/1.1:
// whoever measures latency should not spend time on that.
func watch(s *harness.Server) (io.ReadCloser, error) {
	if overHTTP2 {
		c, err := newClient(s)
		if err != nil {
			return nil, err
		}
		resp, err := c.open(http.MethodGet, watchConfigMaps, "", "", nil)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	address := strings.TrimPrefix(s.URL, "https://")
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", watchConfigMaps, address, harness.AdminToken); err != nil {
		return nil, err
	}
	// The answer has begun, and so has the watch.
	head := make([]byte, 4096)
	n, err := c.Read(head)
	if err == nil && !bytes.HasPrefix(head[:n], []byte("HTTP/1.1 200 ")) {
		err = fmt.Errorf("watch: %q", head[:n])
	}
	return c, err
}

// deliveries reads n events and says how long each took. The times that they carry
// come whole: a server writes a frame at once.
func deliveries(r io.Reader, n int) (out []time.Duration) {
	buf := make([]byte, 16<<10)
	for len(out) < n {
		k, err := r.Read(buf)
		now := time.Now().UnixNano()
		for data := buf[:k]; len(data) > 0; {
			_, rest, ok := bytes.Cut(data, []byte(`"@`))
			if !ok {
				break
			}
			number, rest, ok := bytes.Cut(rest, []byte("@"))
			if sent, err := strconv.ParseInt(string(number), 10, 64); ok && err == nil {
				out = append(out, time.Duration(now-sent))
			}
			data = rest
		}
		if err != nil {
			return out
		}
	}
	return out
}
