package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// againstRun measures several servers in turns.
type againstRun struct {
	*env
	all    []*target
	space  string           // the namespace on each server; sweep deletes it
	filled map[*target]bool // servers that have the Pods for reads
}

// measureAgainst compares rowlock with the servers of -against: it runs each load on one server after the other,
// in several rounds, so that other work on the machine affects all servers alike.
func measureAgainst(e *env) (err error) {
	s, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	ours, err := own(s)
	if err != nil {
		return err
	}
	c := &againstRun{env: e, all: append([]*target{ours}, e.against...), space: "bench-" + strings.ToLower(rand.Text()[:8]), filled: map[*target]bool{}}
	defer func() { err = errors.Join(err, c.sweep()) }()
	for _, t := range c.all {
		if err := c.createNamespace(t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, l := range loads {
		if !e.only.MatchString(l.name) {
			continue
		}
		if err := c.run(l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	if !e.only.MatchString("watchers") {
		return nil
	}
	return c.watchers()
}

// createNamespace creates the namespace and its default ServiceAccount on a server.
func (c *againstRun) createNamespace(t *target) error {
	client := t.client(overHTTP2)
	if _, err := client.do("POST", "/api/v1/namespaces", "application/json", "", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, c.space)); err != nil {
		return err
	}
	// An API server without a controller-manager does not create it.
	_, err := client.do("POST", c.at("serviceaccounts"), "application/json", "", []byte(`{"metadata":{"name":"default"}}`))
	if answered(err, http.StatusConflict) {
		err = nil
	}
	if err == nil {
		_, err = client.read("/readyz") // opens the connection
	}
	return err
}

// sweep deletes the objects on the other servers. The rowlock server is deleted as a whole.
func (c *againstRun) sweep() (all error) {
	for _, t := range c.all[1:] {
		client := t.client(overHTTP2)
		for _, path := range []string{c.at("pods") + "?gracePeriodSeconds=0", c.at("configmaps"), c.leases(), "/api/v1/namespaces/" + c.space} {
			if _, err := client.do("DELETE", path, "", "", nil); err != nil {
				all = errors.Join(all, fmt.Errorf("%s: deleting %s: %w", t.name, path, err))
			}
		}
	}
	return all
}

func (c *againstRun) at(resource string) string {
	return "/api/v1/namespaces/" + c.space + "/" + resource
}

func (c *againstRun) leases() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.space + "/leases"
}

// run runs one load on all servers in turns.
func (c *againstRun) run(l load) error {
	if l.prepare != nil {
		for _, t := range c.all {
			if err := l.prepare(c, t); err != nil {
				return fmt.Errorf("%s: preparing: %w", t.name, err)
			}
		}
	}
	results := make([][]result, len(c.all))
	for round := range max(1, c.pairs) {
		for i, t := range c.all {
			t.lookBehind()
			r, err := t.drive(l.clients, c.seconds, func(client *client, w, n int) (int64, error) {
				return l.one(c, client, requestID{round, w, n})
			})
			if err == nil && r.rate == 0 {
				err = errTooSoon
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	c.compareAll(l.name, results)
	return nil
}

// measures of a result, and their group of figures.
var measures = []struct {
	group, name, unit string
	better            record.Better
	of                func(result) float64
}{
	{"rates side by side", "rate", "1/s", record.Higher, func(r result) float64 { return r.rate }},
	{"p50 side by side", "p50", "ms", record.Lower, p50},
	{"p99 side by side", "p99", "ms", record.Lower, p99},
	{"processor time of one request side by side", "processor time", "ms", record.Lower, func(r result) float64 { return millis(r.cpu) }},
}

// compareAll records the figures of each server, and rowlock's ratio to each other server in each round:
// what disturbs a round affects both parts of its ratio.
func (c *againstRun) compareAll(name string, results [][]result) {
	for _, m := range measures {
		mine := of(results[0], m.of)
		for i, t := range c.all {
			values := of(results[i], m.of)
			if slices.Contains(values, 0) {
				continue // not measured, or the processes are on another machine
			}
			f := record.Of(m.group, name, m.unit, m.better, values...)
			f.Server = t.name
			c.figure(f)
			if i == 0 || slices.Contains(mine, 0) {
				continue
			}
			ratios := make([]float64, len(values))
			for n := range values {
				ratios[n] = mine[n] / values[n]
			}
			c.promised(record.Of("rowlock by "+t.name, name+", "+m.name, "times", m.better, ratios...), 1)
		}
	}
}

// answered reports whether an error is an HTTP answer with that status.
func answered(err error, code int) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.code == code
}

// requestID identifies one request of one client.
type requestID struct{ round, worker, n int }

// name returns a unique object name.
func (t requestID) name(prefix string) string {
	return fmt.Sprintf("%s-%d-%d-%d", prefix, t.round, t.worker, t.n)
}

// count returns a number that differs between the requests of a client.
func (t requestID) count() int { return t.round*1001 + t.n }
