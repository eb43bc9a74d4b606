package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
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

// workflowUpdate is one kind of request that updates the status.
type workflowUpdate struct {
	name, method, path, contentType string
	message                         int // bytes of the message of each node
	whole                           bool
}

var workflowUpdates = []workflowUpdate{
	{"merge patch", "PATCH", workflows + "/w/status", "application/merge-patch+json", 100, false},
	{"update", "PUT", workflows + "/w/status", "application/json", 100, true},
	{"apply", "PATCH", workflows + "/w/status?force=true&fieldManager=w", "application/apply-patch+yaml", 5000, true}, // longer messages, so fewer nodes: no server stores managed fields for so many
}

// body returns the body of update n of the workflow at a version. rest is the result of workflowNodes.
func (u workflowUpdate) body(n int, version, rest string) []byte {
	changed := fmt.Sprintf(`"build-%d":{"message":"at %d"}`, n, time.Now().UnixNano())
	if !u.whole {
		return []byte(`{"status":{"nodes":{` + changed + `}}}`)
	}
	return []byte(`{"apiVersion":"bench.example.com/v1","kind":"Workflow","metadata":{"name":"w"` + version + `},"status":{"phase":"Running","nodes":{` + changed + rest)
}

// workflowNodes returns the end of a workflow object of largeBytes: all nodes of its status except those that updates change.
func workflowNodes(message int) string {
	nodes := &strings.Builder{}
	text := strings.Repeat("text ", message/5)
	for i := 1000; nodes.Len() < largeBytes; i++ {
		fmt.Fprintf(nodes, `,"build-%d":{"id":"build-%d","name":"build.step(%d)","displayName":"step(%d)","type":"Pod","templateName":"main","phase":"Succeeded","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:01:00Z","message":%q,"inputs":{"parameters":[{"name":"text","value":"number %d"}]},"outputs":{"exitCode":"0"},"children":["build-%d"]}`,
			i, i, i, i, text, i, i+1)
	}
	return nodes.String() + "}}}"
}

// measureLarge measures the latency of small requests while a workflow's status of 20 MB is updated once a second, and
// 20 watchers, some of them slow, receive the events.
func measureLarge(e *env) error {
	for _, u := range workflowUpdates {
		if !e.only.MatchString(u.name) {
			continue
		}
		if err := e.large(u); err != nil {
			return fmt.Errorf("%s: %w", u.name, err)
		}
	}
	return nil
}

func (e *env) large(u workflowUpdate) error {
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
	if err := errors.Join(grantClusterAdmin(c), define(c)); err != nil {
		return err
	}
	first := u
	first.whole = true
	if _, err := c.do("PATCH", workflows+"/w/status", "application/merge-patch+json", "", first.body(0, "", workflowNodes(u.message))); err != nil {
		return err
	}
	loads := slices.Concat(smallWriters, createsAndGets)
	var idle, loaded [][]result
	var updates, took, share []float64
	for range max(1, e.pairs) {
		before := processorTime(s.Pid())
		without, err := e.runSmall(s, loads)
		if err != nil {
			return err
		}
		used := processorTime(s.Pid()) - before
		f, err := newFollowers(s, u.name)
		if err != nil {
			return err
		}
		profiled := profile(s, e.seconds)
		before = processorTime(s.Pid())
		with, err := e.runSmall(s, loads)
		used = processorTime(s.Pid()) - before - used
		seen, ended := f.end()
		if err := errors.Join(err, ended, profiled()); err != nil {
			return err
		}
		e.report("  watchers", "%d events of 20 MB in all, %d of %d watches ended by the server", seen.events, seen.ended, largeWatchers)
		idle, loaded = append(idle, without), append(loaded, with)
		updates, took = append(updates, float64(seen.updates)/seen.seconds), append(took, 1000*seen.took/float64(max(1, seen.updates)))
		share = append(share, millis(used)/float64(max(1, seen.updates)))
	}
	group := "a status of 20 MB, " + u.name
	for i, m := range loads {
		c := compare(idle, loaded, i)
		e.report(m.name, "%v", c)
		e.promised(record.Of(group, m.name+", p99", "times", record.Lower, c.ratios...), 2)
	}
	e.report("  the status", "%.2f updates/s, %.0f ms each   peak memory %.0f MB", median(updates), median(took), peaks([]int{s.Pid()}))
	e.figure(record.Of(group, "processor time of an update and its events", "ms", record.Lower, share...))
	e.figure(record.Of(group, "peak memory", "MB", record.Lower, peaks([]int{s.Pid()})))
	return nil
}

// define creates the CustomResourceDefinition and a workflow.
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

// trickle reads slowly.
type trickle struct{ io.Reader }

func (t *trickle) Read(p []byte) (int, error) {
	const each = 20 // reads a second
	time.Sleep(time.Second / each)
	return t.Reader.Read(p[:min(len(p), largeRate/each)])
}
