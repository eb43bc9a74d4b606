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

// contest is one load on several servers in turns.
type contest struct {
	*env
	all    []*target
	space  string           // the namespace on each of them, which is deleted in the end
	filled map[*target]bool // the Pods of all reads are there
}

// measureAgainst drives a server of ours and all others with the same loads: each load for
// a while on one server after the other, and all of them again, so that what else the machine
// does meets all alike.
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
	c := &contest{env: e, all: append([]*target{ours}, e.against...), space: "bench-" + strings.ToLower(rand.Text()[:8]), filled: map[*target]bool{}}
	defer func() { err = errors.Join(err, c.sweep()) }()
	for _, t := range c.all {
		if err := c.settle(t); err != nil {
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

// settle makes the namespace on a server, as far as nobody else does it.
func (c *contest) settle(t *target) error {
	client := t.client(overHTTP2)
	if _, err := client.do("POST", "/api/v1/namespaces", "application/json", "", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, c.space)); err != nil {
		return err
	}
	// A lone API server has nobody that creates it; if somebody does, it exists.
	_, err := client.do("POST", c.at("serviceaccounts"), "application/json", "", []byte(`{"metadata":{"name":"default"}}`))
	if answered(err, http.StatusConflict) {
		err = nil
	}
	if err == nil {
		_, err = client.read("/readyz") // it has connected to its database then
	}
	return err
}

// sweep deletes the objects created on other servers. Our own server is deleted as a whole.
func (c *contest) sweep() (all error) {
	for _, t := range c.all[1:] {
		client := t.client(overHTTP2)
		for _, path := range []string{c.at("pods") + "?gracePeriodSeconds=0", c.at("configmaps"), c.leases(), "/api/v1/namespaces/" + c.space} {
			if _, err := client.do("DELETE", path, "", "", nil); err != nil {
				all = errors.Join(all, fmt.Errorf("%s: what was made there is not deleted: %w", t.name, err))
			}
		}
	}
	return all
}

func (c *contest) at(resource string) string {
	return "/api/v1/namespaces/" + c.space + "/" + resource
}

func (c *contest) leases() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.space + "/leases"
}

// run has all servers under one load in turns.
func (c *contest) run(l load) error {
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
				return l.one(c, client, turn{round, w, n})
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

// compareAll records what each server did, and ours by each other's: the ratios of the rounds,
// so that what disturbs a round is in both parts of its ratio.
func (c *contest) compareAll(name string, results [][]result) {
	for _, m := range measures {
		mine := of(results[0], m.of)
		for i, t := range c.all {
			values := of(results[i], m.of)
			if slices.Contains(values, 0) {
				continue // the processes are not on this machine, or it was not measured
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

// answered reports whether an error is an answer of that status.
func answered(err error, code int) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.code == code
}

// turn is one request of one client.
type turn struct{ round, worker, n int }

// name is one that nothing else has.
func (t turn) name(prefix string) string {
	return fmt.Sprintf("%s-%d-%d-%d", prefix, t.round, t.worker, t.n)
}

// count is another one for each request of a client.
func (t turn) count() int { return t.round*1001 + t.n }
