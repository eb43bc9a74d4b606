// Package health answers /livez, /readyz and /healthz.
//
// It promises: a check is asked when the path is, none is cached; why one fails is
// in the log, and in the answer only that it does.
package health

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// Check is one thing that must be well. Probe returns why it is not.
type Check struct {
	Name  string
	Probe func(context.Context) error
}

// Checks serves the three paths and the single checks below them.
type Checks struct {
	live, ready []Check
	log         *slog.Logger
	draining    atomic.Bool
}

// New makes Checks: live ones count for /livez, /healthz and /readyz, ready ones
// for /readyz alone.
func New(log *slog.Logger, live, ready []Check) *Checks {
	c := &Checks{log: log}
	c.live = append([]Check{{"ping", ok}, {"log", ok}}, live...)
	c.ready = append(append(slices.Clone(c.live), ready...), Check{"shutdown", func(context.Context) error {
		if c.draining.Load() {
			return fmt.Errorf("process is shutting down")
		}
		return nil
	}})
	return c
}

func ok(context.Context) error { return nil }

// Drain turns /readyz red.
func (c *Checks) Drain() { c.draining.Store(true) }

// Serves reports whether a path is one of these.
func Serves(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "livez" || first == "readyz" || first == "healthz"
}

// ServeHTTP answers a path that Serves knows.
func (c *Checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group, name, single := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	checks := c.live
	if group == "readyz" {
		checks = c.ready
	}
	if single && name != "" {
		i := slices.IndexFunc(checks, func(k Check) bool { return k.Name == name })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		c.one(w, r, group, checks[i])
		return
	}
	c.all(w, r, group, checks)
}

func (c *Checks) one(w http.ResponseWriter, r *http.Request, group string, k Check) {
	if err := k.Probe(r.Context()); err != nil {
		c.log.Warn("health check failed", "group", group, "check", k.Name, "error", err)
		http.Error(w, fmt.Sprintf("internal server error: %v", "reason withheld"), http.StatusInternalServerError)
		return
	}
	text(w, "ok")
}

func (c *Checks) all(w http.ResponseWriter, r *http.Request, group string, checks []Check) {
	excluded := map[string]bool{}
	query := r.URL.Query()
	for _, e := range query["exclude"] {
		excluded[e] = true
	}
	var lines bytes.Buffer
	var failed []string
	for _, k := range checks {
		if excluded[k.Name] {
			delete(excluded, k.Name)
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", k.Name)
			continue
		}
		if err := k.Probe(r.Context()); err != nil {
			c.log.Warn("health check failed", "group", group, "check", k.Name, "error", err)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", k.Name)
			failed = append(failed, k.Name)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", k.Name)
	}
	if len(excluded) > 0 {
		names := make([]string, 0, len(excluded))
		for n := range excluded {
			names = append(names, fmt.Sprintf("%q", n))
		}
		slices.Sort(names)
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(names, ", "))
	}
	if len(failed) > 0 {
		http.Error(w, lines.String()+group+" check failed", http.StatusInternalServerError)
		return
	}
	if _, verbose := query["verbose"]; !verbose {
		text(w, "ok")
		return
	}
	fmt.Fprintf(&lines, "%s check passed\n", group)
	text(w, lines.String())
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(s))
}
