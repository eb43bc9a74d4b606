// Package health answers /livez, /readyz and /healthz. Each request runs its checks, without caching; the
// reason of a failure is in the log and, for users that may read the path of the single check, in that
// answer.
package health

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/server/ratelog"
)

// Remark is a Probe's result for a problem that an operator should solve but that is no reason to send
// requests elsewhere: the single check fails with Err, and the combined check shows Shown, to all its
// readers, and does not fail.
type Remark struct {
	Shown string
	Err   error
}

func (r *Remark) Error() string { return r.Err.Error() }
func (r *Remark) Unwrap() error { return r.Err }

// Check is one health check. Probe returns the fault; nil if there is none.
type Check struct {
	Name  string
	Probe func(context.Context) error
}

// Config has the checks.
type Config struct {
	// Live checks count for all paths, Healthy ones for /healthz and /readyz, Ready ones for
	// /readyz alone. Boot checks fail until the server has started; they count for all
	// paths, but for /livez only after Grace.
	Live, Healthy, Ready, Boot []Check
	Grace                      time.Duration
	Clock                      func() time.Time // nil: time.Now
	Log                        *slog.Logger     // nil: nothing is logged
}

// Checks serves the three paths and the single checks below them.
type Checks struct {
	groups   map[string][]Check
	boot     []Check
	starting func(context.Context) bool // a boot check fails, which is no fault yet
	log      *slog.Logger
	draining atomic.Bool
	slis     slis
	failed   map[string]*ratelog.Line // for each check: anonymous clients may request it
}

// startup is the time after which the log names the checks that are not ready.
const startup = time.Minute

// New makes Checks.
func New(cfg Config) *Checks {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	c := &Checks{log: cfg.Log, boot: cfg.Boot, slis: newSLIs(), failed: map[string]*ratelog.Line{}}
	live := append([]Check{{"ping", ok}, {"log", ok}}, cfg.Live...)
	until, quiet := cfg.Clock().Add(cfg.Grace), cfg.Clock().Add(max(cfg.Grace, startup))
	c.starting = func(ctx context.Context) bool {
		return !cfg.Clock().After(quiet) && slices.ContainsFunc(cfg.Boot, func(k Check) bool { return k.Probe(ctx) != nil })
	}
	var patient []Check
	for _, b := range cfg.Boot {
		patient = append(patient, Check{b.Name, func(ctx context.Context) error {
			if cfg.Clock().After(until) {
				return b.Probe(ctx)
			}
			return nil
		}})
	}
	leaving := Check{"shutdown", func(context.Context) error {
		if c.draining.Load() {
			return errors.New("process is shutting down")
		}
		return nil
	}}
	c.groups = map[string][]Check{
		"healthz": slices.Concat(live, cfg.Healthy, cfg.Boot),
		"livez":   slices.Concat(live, patient),
		"readyz":  slices.Concat(live, cfg.Healthy, cfg.Ready, cfg.Boot, []Check{leaving}),
	}
	for _, k := range c.groups["readyz"] { // all there are
		c.failed[k.Name] = &ratelog.Line{}
	}
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

// ServeHTTP answers requests for paths for which Serves returns true.
func (c *Checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group, name, single := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	checks := c.groups[group]
	if !single {
		c.all(w, r, group, checks)
		return
	}
	i := slices.IndexFunc(checks, func(k Check) bool { return k.Name == name })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	c.one(w, r, group, checks[i])
}

func (c *Checks) one(w http.ResponseWriter, r *http.Request, group string, k Check) {
	if err := k.Probe(r.Context()); err != nil {
		c.report(r, group, k.Name, err)
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("ok")) // the client may have disconnected
}

func (c *Checks) all(w http.ResponseWriter, r *http.Request, group string, checks []Check) {
	excluded := map[string]bool{}
	query := r.URL.Query()
	for _, e := range query["exclude"] {
		excluded[e] = true
	}
	var lines bytes.Buffer
	failed := false
	for _, k := range checks {
		if excluded[k.Name] {
			delete(excluded, k.Name)
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", k.Name)
			continue
		}
		err := k.Probe(r.Context())
		c.slis.observe(group, k.Name, err == nil)
		if remark, ok := errors.AsType[*Remark](err); ok {
			fmt.Fprintf(&lines, "[!]%s: %s\n", k.Name, remark.Shown)
			continue
		}
		if err != nil {
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", k.Name)
			failed = true
			c.report(r, group, k.Name, err)
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
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(names, ","))
	}
	if failed {
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

// report logs failures: not too often, and at a lower level while they are expected, as the server starts or
// ends.
func (c *Checks) report(r *http.Request, group, check string, err error) {
	args := []any{"group", group, "check", check, "error", strings.ReplaceAll(err.Error(), "\n", "; ")}
	if c.draining.Load() || slices.ContainsFunc(c.boot, func(k Check) bool { return k.Name == check }) || c.starting(r.Context()) {
		c.log.DebugContext(r.Context(), "health check failed", args...)
		return
	}
	c.failed[check].Log(r.Context(), c.log, slog.LevelWarn, "health check failed", args...)
}

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(s)) // the client may have disconnected
}
