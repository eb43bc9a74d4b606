package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	largeBytes    = 20 << 20 // of the status
	largeWatchers = 20
	largeSlow     = 5         // of them, which read largeRate
	largeRate     = 512 << 10 // bytes a second
	workflows     = "/apis/bench.example.com/v1/namespaces/default/workflows"
)

const workflowDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"workflows.bench.example.com"},"spec":{"group":"bench.example.com",
"names":{"kind":"Workflow","plural":"workflows"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

// workflowStatus is like that of a workflow with so many nodes that it has largeBytes.
func workflowStatus() string {
	nodes := &strings.Builder{}
	for i := 0; nodes.Len() < largeBytes; i++ {
		if i > 0 {
			nodes.WriteByte(',')
		}
		fmt.Fprintf(nodes, `"build-%d":{"id":"build-%d","name":"build.step(%d)","displayName":"step(%d)","type":"Pod","templateName":"main","phase":"Succeeded","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:01:00Z","message":%q,"inputs":{"parameters":[{"name":"text","value":"number %d"}]},"outputs":{"exitCode":"0"},"children":["build-%d"]}`,
			i, i, i, i, strings.Repeat("text ", 20), i, i+1)
	}
	return `{"phase":"Running","nodes":{` + nodes.String() + `}}`
}

// measureLarge measures the latency of mice while a workflow's status of 20 MB is updated once a second, and
// 20 watchers follow it, of which some are slow.
func measureLarge(e *env) error {
	s, stop, err := e.start("--max-object-bytes=33554432")
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	c, err := newClient(s)
	if err != nil {
		return err
	}
	if err := errors.Join(letEverybodyIn(c), define(c)); err != nil {
		return err
	}
	if _, err := c.do("PATCH", workflows+"/w/status", "application/merge-patch+json", "", []byte(`{"status":`+workflowStatus()+`}`)); err != nil {
		return err
	}
	var alone, beside [][]result
	var updates, took []float64
	for range max(1, e.pairs) {
		quiet, err := e.mice(s)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(e.ctx)
		watching, err := followWorkflow(ctx, s)
		if err != nil {
			cancel()
			return err
		}
		profiled := profile(s, e.seconds)
		updating := updateWorkflow(ctx, c)
		loud, err := e.mice(s)
		cancel()
		rate, each, updated := updating()
		if err := errors.Join(err, updated, profiled()); err != nil {
			return err
		}
		events, ended := watching()
		e.report("  watchers", "%d events of 20 MB in all, %d of %d watches ended by the server", events, ended, largeWatchers)
		alone, beside, updates, took = append(alone, quiet), append(beside, loud), append(updates, rate), append(took, millis(each))
	}
	for i, m := range mice {
		a50, a99 := medians(alone, i)
		b50, b99 := medians(beside, i)
		times := make([]float64, len(alone))
		for n := range times {
			times[n] = float64(beside[n][i].p99) / float64(alone[n][i].p99)
		}
		e.report(m.name, "alone p50 %v p99 %v   beside a status of 20 MB p50 %v p99 %v   p99 times %.1f of %.1f", a50, a99, b50, b99, median(times), times)
		e.promised(record.Of("a status of 20 MB", m.name+", p99", "times", record.Lower, times...), 2)
	}
	e.report("  the status", "%.2f updates/s, %.0f ms each   peak memory %.0f MB", median(updates), median(took), peaks([]int{s.Pid()}))
	e.figure(record.Of("a status of 20 MB", "peak memory", "MB", record.Lower, peaks([]int{s.Pid()})))
	return nil
}

// define has the server serve workflows, and makes one.
func define(c *client) error {
	if _, err := c.do("POST", definitionsPath, "application/json", "", []byte(workflowDefinition)); err != nil {
		return err
	}
	workflow := []byte(`{"apiVersion":"bench.example.com/v1","kind":"Workflow","metadata":{"name":"w"}}`)
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err = c.do("POST", workflows, "application/json", "", workflow); err == nil {
			return nil
		}
	}
	return err
}

// updateWorkflow changes the status once a second until ctx ends. What it returns waits for that, and says how many updates a
// second there were and how long each took.
func updateWorkflow(ctx context.Context, c *client) func() (rate float64, each time.Duration, err error) {
	var n int
	var all time.Duration
	var failed error
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil && failed == nil; n++ {
			sent := time.Now()
			patch := fmt.Appendf(nil, `{"status":{"nodes":{"build-%d":{"message":"at %d"}}}}`, n, sent.UnixNano())
			_, failed = c.do("PATCH", workflows+"/w/status", "application/merge-patch+json", "", patch)
			all += time.Since(sent)
			sleepUntil(sent.Add(time.Second))
		}
	}()
	return func() (float64, time.Duration, error) {
		<-ended
		return float64(n) / time.Since(began).Seconds(), all / time.Duration(max(1, n)), failed
	}
}

// followWorkflow has watchers follow the workflows until ctx ends. What it returns waits for that, and says how many events of the
// status they had, and how many of them the server has ended.
func followWorkflow(ctx context.Context, s *harness.Server) (func() (events, ended int64), error) {
	var wg sync.WaitGroup
	var events, over atomic.Int64
	for i := range largeWatchers {
		c, err := newClient(s)
		if err != nil {
			return nil, err
		}
		list, err := c.open("GET", workflows+"?limit=1", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", nil)
		if err != nil {
			return nil, err
		}
		var at struct {
			Metadata struct{ ResourceVersion string }
		}
		err = json.NewDecoder(list.Body).Decode(&at)
		list.Body.Close()
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, "GET", c.url+workflows+"?watch=1&resourceVersion="+at.Metadata.ResourceVersion, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		resp, err := c.c.Do(r)
		if err != nil {
			return nil, err
		}
		var in io.Reader = resp.Body
		if i < largeSlow {
			in = &trickle{in}
		}
		wg.Go(func() {
			defer resp.Body.Close()
			buf := make([]byte, 256<<10)
			for read := int64(0); ; {
				n, err := in.Read(buf)
				if before := read / largeBytes; (read+int64(n))/largeBytes > before {
					events.Add(1)
				}
				if read += int64(n); err != nil {
					if ctx.Err() == nil {
						over.Add(1)
					}
					return
				}
			}
		})
	}
	return func() (int64, int64) { wg.Wait(); return events.Load(), over.Load() }, nil
}

// trickle reads slowly.
type trickle struct{ io.Reader }

func (t *trickle) Read(p []byte) (int, error) {
	const each = 20 // reads a second
	time.Sleep(time.Second / each)
	return t.Reader.Read(p[:min(len(p), largeRate/each)])
}
