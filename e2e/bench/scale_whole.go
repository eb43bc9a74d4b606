package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// scaleWhole measures one list of all Pods, streamed: its duration, and the server's additional memory during and after
// it.
func scaleWhole(s *scaled) error {
	for _, variant := range []struct {
		name, accept string
		gzip         bool
	}{{"as JSON", "", false}, {"as JSON, compressed", "", true}, {"as Protobuf", protobufType, false}} {
		before, err := calm(s.server.Pid())
		if err != nil {
			return err
		}
		profiled := profile(s.server, s.seconds)
		first, took, size, most, err := s.whole(variant.accept, variant.gzip)
		name := "all Pods " + variant.name
		if err := errors.Join(profiled(), unlessLate(err)); err != nil {
			return fmt.Errorf("%s: %w", variant.name, err)
		}
		if err != nil {
			s.report("whole list: "+name, "not served in the time that a request has")
			continue
		}
		after, err := calm(s.server.Pid())
		if err != nil {
			return err
		}
		s.figure(record.Of("whole list", name+", time", "s", record.Lower, took.Seconds()))
		s.figure(record.Of("whole list", name+", first byte", "ms", record.Lower, millis(first)))
		s.figure(record.Of("whole list", name+", size", "MB", "", size))
		s.figure(record.Of("whole list", name+", memory on top meanwhile", "MB", record.Lower, most-before.rss))
		s.figure(record.Of("whole list", name+", memory on top that stays", "MB", record.Lower, after.rss-before.rss))
	}
	m, err := memoryOf(s.server.Pid())
	if err != nil {
		return err
	}
	s.held("after lists in all forms", m)
	return nil
}

// unlessLate returns err unless it is the server's request timeout, which is a valid result.
func unlessLate(err error) error {
	if answered(err, http.StatusGatewayTimeout) {
		return nil
	}
	return err
}

// whole reads and discards one list. size and most are in MB.
func (s *scaled) whole(accept string, gzip bool) (first, took time.Duration, size, most float64, err error) {
	clients, err := s.clients(1, overHTTP2)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	c := clients[0]
	c.gzip = gzip
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	watched := peak(ctx, s.server.Pid())
	began := time.Now()
	resp, err := c.open(http.MethodGet, allPods, "", accept, nil)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, c.buf[:1]); err != nil {
		return 0, 0, 0, 0, err
	}
	first = time.Since(began)
	n, err := c.drain(resp.Body)
	took = time.Since(began)
	cancel()
	return first, took, float64(n+1) / (1 << 20), <-watched, err
}
