package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// Numbers of watches: on shared connections, and with a connection each, which file descriptors limit here and in
// the server.
var (
	manyShared = []int{5_000, 20_000, 100_000}
	manyAlone  = []int{5_000, 18_000}
)

const (
	manyEvents = 5 // after one for warm-up
	manyIdle   = 70 * time.Second
	// As client-go sends it: with bookmarks, one a minute.
	manyPath = configMaps + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion="
)

// measureManyWatches measures the memory (as the kernel counts it) and the processor time of an idle watch, and the
// cost of an event that all watches receive.
func measureManyWatches(e *env) error {
	for _, variant := range []struct {
		name    string
		sizes   []int
		perConn int
		http2   bool
	}{
		{"100 a connection, HTTP/2", manyShared, 100, true},
		{"a connection each, HTTP/2", manyAlone, 1, true},
		{"a connection each, HTTP/1.1", manyAlone, 1, false},
	} {
		for _, n := range variant.sizes {
			name := fmt.Sprintf("%d watches, %s", n, variant.name)
			if !e.only.MatchString(name) {
				continue
			}
			err := e.manyWatches(name, n, variant.perConn, variant.http2)
			if errors.Is(err, errNoTaps) {
				e.report(name, "left out: %v", err)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (e *env) manyWatches(name string, n, perConn int, http2 bool) error {
	s, stop, err := e.start("--max-watches=0", "--max-watches-per-user=0")
	if err != nil {
		return err
	}
	defer stop()
	c, err := newClientOver(s, false)
	if err != nil {
		return err
	}
	for i := range 500 { // a server that has done something
		if _, err := c.do("POST", configMaps, "application/json", "", fmt.Appendf(nil, `{"metadata":{"name":"w%d","namespace":"default"}}`, i)); err != nil {
			return err
		}
	}
	now, err := newest(c)
	if err != nil {
		return err
	}
	before := settled(s.Pid())
	began := time.Now()
	t, err := openTaps(s, manyPath+now, n, perConn, http2)
	if err != nil {
		return err
	}
	defer t.close()
	opened := time.Since(began)
	idle := (settled(s.Pid()) - before) * 1024 / float64(n)
	if err := profile(s, time.Second)(); err != nil {
		return err
	}
	used := processorTime(s.Pid())
	time.Sleep(manyIdle)
	used = processorTime(s.Pid()) - used
	cost, took, err := e.toAll(s, c, t, n)
	if err != nil {
		return err
	}
	after := (settled(s.Pid()) - before) * 1024 / float64(n)
	e.report(name, "opened in %v   a watch: %.1f KB, after events %.1f KB   doing nothing: %.2f %% of a core   an event to all: cpu %v, the last has it after %v",
		opened.Round(time.Millisecond), idle, after, 100*used.Seconds()/manyIdle.Seconds(), cost, took)
	e.record.Add(record.Of("many watches", name+", a watch that says nothing", "KB", record.Lower, idle))
	e.record.Add(record.Of("many watches", name+", a watch after events", "KB", record.Lower, after))
	e.record.Add(record.Of("many watches", name+", processor time of an event to all", "ms", record.Lower, cost.Seconds()*1000))
	e.record.Add(record.Of("many watches", name+", the last has an event after", "ms", record.Lower, took.Seconds()*1000))
	return nil
}

// newest returns the current resource version.
func newest(c *client) (string, error) {
	resp, err := c.open(http.MethodGet, configMaps+"?limit=1", "", "application/json", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return "", fmt.Errorf("a list of ConfigMaps: %w", err)
	}
	return list.ResourceVersion, nil
}

// toAll writes objects that all watches receive, one after the other, and returns medians: the server's processor
// time for one, and the time until the last watch has received it.
func (e *env) toAll(s *harness.Server, c *client, t *taps, n int) (cost, took time.Duration, err error) {
	var costs, times []time.Duration
	for i := range 1 + manyEvents {
		used, began := processorTime(s.Pid()), time.Now()
		body := fmt.Appendf(nil, `{"metadata":{"name":"e%d"},"data":{"sent":"@%d@"}}`, i, began.UnixNano())
		if _, err := c.do("POST", configMaps, "application/json", "", body); err != nil {
			return 0, 0, err
		}
		arrived, err := t.read(n)
		if err != nil {
			return 0, 0, err
		}
		if len(arrived) != n {
			return 0, 0, fmt.Errorf("event %d arrived at %d of %d watches", i, len(arrived), n)
		}
		last := slices.Max(arrived)
		time.Sleep(200 * time.Millisecond) // garbage collection is a part of the cost
		if i > 0 {
			costs, times = append(costs, processorTime(s.Pid())-used), append(times, last)
		}
	}
	slices.Sort(costs)
	slices.Sort(times)
	return costs[len(costs)/2], times[len(times)/2].Round(time.Millisecond), nil
}
