package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// auditing compares the audit events of a scenario with those that its steps want.
type auditing struct {
	events func(id string) ([][]byte, error)
	vars   map[string]string
	seen   []audited
}

// audited is a step whose events were compared.
type audited struct {
	step   int
	id     string // of its request
	wanted int
}

// eventsEvery is the polling interval of the log while an event is missing.
const eventsEvery = 20 * time.Millisecond

// compare lists how the events of a request differ from those that its step wants. The last ones are
// recorded when the client has its answer already.
func (a *auditing) compare(ctx context.Context, index int, step *Step, got *answer) []string {
	if step.Audit == nil {
		return nil
	}
	if a.events == nil {
		return []string{"audit: this server records no events"}
	}
	id := got.header.Get("Audit-Id")
	var lines [][]byte
	for end := time.Now().Add(lateFor); ; {
		var err error
		if lines, err = a.events(id); err != nil {
			return []string{"audit: " + err.Error()}
		}
		if len(lines) >= len(step.Audit) || time.Now().After(end) || ctx.Err() != nil {
			break
		}
		time.Sleep(eventsEvery)
	}
	a.seen = append(a.seen, audited{index, id, len(step.Audit)})
	found := []any{}
	for _, line := range lines {
		var event any
		if err := json.Unmarshal(line, &event); err != nil {
			return []string{fmt.Sprintf("audit: %s: %v", line, err)}
		}
		found = append(found, normalEvent(event))
	}
	want, is := tidy(deepCopy(step.Audit), a.vars), tidy(found, a.vars)
	for _, path := range step.Ignore {
		if path, ok := strings.CutPrefix(path, "audit."); ok {
			remove(want, strings.Split(path, "."))
			remove(is, strings.Split(path, "."))
		}
	}
	var diff []string
	differ("audit", want, is, a.vars, &diff)
	return diff
}

// normalEvent replaces the parts of an event that differ from run to run, in addition to those of bodies.
func normalEvent(event any) any {
	e, _ := event.(map[string]any)
	for key, normal := range map[string]any{
		"auditID": "<uid>", "requestReceivedTimestamp": "<time>", "stageTimestamp": "<time>", "sourceIPs": []any{"<ip>"},
	} {
		if _, ok := e[key]; ok {
			e[key] = normal
		}
	}
	// A slow machine adds annotations.
	if notes, ok := e["annotations"].(map[string]any); ok {
		maps.DeleteFunc(notes, func(key string, _ any) bool { return strings.HasPrefix(key, "apiserver.latency.k8s.io/") })
		if len(notes) == 0 {
			delete(e, "annotations")
		}
	}
	return event
}

// recount looks whether requests have left more events by the end of the scenario.
func (a *auditing) recount(results []Result) {
	for _, s := range a.seen {
		lines, err := a.events(s.id)
		if r := &results[s.step]; r.Equal() && (err != nil || len(lines) != s.wanted) {
			r.Diff = append(r.Diff, fmt.Sprintf("audit: want %d events, got %d in the end (%v)", s.wanted, len(lines), err))
		}
	}
}

// AuditLog returns the flags that make a server record events by the policy of a scenario, in files of a folder, and a
// function that reads these events.
func (s *Scenario) AuditLog(dir string) (flags []string, events func(id string) ([][]byte, error), err error) {
	if len(s.Audit) == 0 {
		return nil, nil, nil
	}
	policy, log := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, s.Audit, 0o600); err != nil {
		return nil, nil, err
	}
	return []string{"--audit-policy-file", policy, "--audit-log-path", log}, func(id string) ([][]byte, error) {
		data, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		return EventsOf(bytes.SplitAfter(data, []byte("\n")), id), nil
	}, nil
}

// EventsOf returns the events that have an ID. An event that is being written is none yet.
func EventsOf(lines [][]byte, id string) [][]byte {
	var own [][]byte
	for _, line := range lines {
		var event struct{ AuditID string }
		if json.Unmarshal(line, &event) == nil && event.AuditID == id {
			own = append(own, line)
		}
	}
	return own
}
