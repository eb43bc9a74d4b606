package main

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// measureStop measures how long an idle server takes to exit after a signal, with open watches and without.
func measureStop(e *env) error {
	const times = 7
	for _, variant := range []struct {
		name              string
		watchers, perConn int
		http2             bool
	}{
		{"nobody connected", 0, 1, true},
		{"50 watchers, HTTP/2", 50, 10, true},
		{"50 watchers, HTTP/1.1", 50, 1, false},
		{"10,000 watchers, HTTP/2", 10_000, 100, true},
	} {
		if !e.only.MatchString(variant.name) {
			continue
		}
		var took []time.Duration
		for range times {
			d, err := e.stopped(variant.watchers, variant.perConn, variant.http2)
			if err != nil {
				return fmt.Errorf("%s: %w", variant.name, err)
			}
			took = append(took, d)
		}
		slices.Sort(took)
		e.report("from SIGTERM to the end, "+variant.name, "%v (%v to %v)", ms(took[times/2]), ms(took[0]), ms(took[times-1]))
	}
	return nil
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func (e *env) stopped(watchers, perConn int, http2 bool) (time.Duration, error) {
	s, stop, err := e.start("--max-watches-per-user=50000")
	if err != nil {
		return 0, err
	}
	defer stop()
	c, err := newClient(s)
	if err != nil {
		return 0, err
	}
	for i := range 20 {
		if _, err := c.do("POST", configMaps, "application/json", "", configMap(fmt.Sprintf("c%d", i), 1000)); err != nil {
			return 0, err
		}
	}
	var transport *http.Transport
	for i := range watchers {
		if i%perConn == 0 {
			if transport, err = newTransport(s, http2); err != nil {
				return 0, err
			}
		}
		req, err := http.NewRequest(http.MethodGet, s.URL+configMaps+"?watch=1", nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if _, err := bufio.NewReader(resp.Body).ReadBytes('\n'); err != nil {
			return 0, err
		}
	}
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	if err := s.Stop(); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}
