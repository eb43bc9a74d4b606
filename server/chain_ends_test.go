package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// acquaintance is the identity of every client.
type acquaintance struct{}

func (acquaintance) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}}, true, nil
}

// output collects what auditors, tracers and logs write.
type output struct {
	mu     sync.Mutex
	stages []string // of audit events
	spans  []string // that have ended: they come when the tracer sends them
	line   bytes.Buffer
}

func (t *output) Take(line []byte) error {
	var event struct{ Stage string }
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stages = append(t.stages, event.Stage)
	return nil
}

func (t *output) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range spans {
		t.spans = append(t.spans, s.Name())
	}
	return nil
}

func (*output) Shutdown(context.Context) error { return nil }

// filtered returns a server of which there are only the filters, all of them, and some user may have
// one watch.
func filtered(t *testing.T) (*Server, *output) {
	to, rate := &output{}, int32(1_000_000)
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse}"))
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := tracing.New(&tracing.Config{SamplingRatePerMillion: &rate}, tracing.Settings{
		Exporter: func(*string) (sdktrace.SpanExporter, error) { return to, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close() })
	catalogue := kinds.NewCatalogue(builtin.Resources())
	s := &Server{cfg: Config{
		Feature:   func(string) bool { return false },
		Store:     sqlstore.New(memory.New(memory.Config{}).Open(), sqlstore.Config{}),
		Catalogue: catalogue, Clock: time.Now, Authorizer: authx.AlwaysAllow{}, Tracer: tracer, RequestTimeout: time.Minute,
		Log:    slog.New(slog.NewTextHandler(&to.line, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Audit:  &audit.Auditor{Policy: policy, Sinks: []audit.Sink{to}, Metrics: audit.NewMetrics(), Clock: time.Now},
		Limits: filters.Limits{Watches: 2, UserWatches: 1},
		Serving: Serving{
			GoawayChance: 1e-9, StrictTransport: "max-age=1", RefuseLeaving: true,
		},
	}}
	s.Cache = cache.New(catalogue)
	s.Metrics, s.flows = metrics.New(catalogue, time.Now), flow.New(s.Cache, flow.Config{Plain: true})
	s.revoked = filters.NewRevoked(s.cfg.Authorizer, s.cfg.Log)
	s.watching, s.started, s.leaving = t.Context(), make(chan struct{}), make(chan struct{})
	close(s.started)
	return s, to
}

// lasting returns the number of long-running requests in the metric.
func (s *Server) lasting(t *testing.T) (n float64) {
	t.Helper()
	families, err := s.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "apiserver_longrunning_requests" {
			for _, m := range f.Metric {
				n += m.Gauge.GetValue()
			}
		}
	}
	return n
}

// leftToDo returns how many functions a scope calls at the end of its answer.
func leftToDo(s *request.Scope) int {
	if s == nil || !s.IsDetached() {
		return 0
	}
	return reflect.ValueOf(s).Elem().FieldByName("detached").Elem().FieldByName("ends").Len()
}

// longWatch returns a watch that every filter has something to do for.
func longWatch() *http.Request {
	return httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1&labelSelector="+strings.Repeat("a,", 10_000)+"a", nil)
}

// TestFiltersEndWithTheAnswer: a filter does its work at the end of a request once, at the end of an
// answer that continues without its handler. A new filter belongs into this table: as
// one with such work, which it gives to request.Scope.AtEnd, or as one without.
func TestFiltersEndWithTheAnswer(t *testing.T) {
	want := map[string]int{"metrics": 1, "trace": 1, "access log": 1, "recover": 1, "drain": 1, "audit": 1, "long selectors": 1, "in flight": 1, "revoked": 1}
	for _, name := range []string{"scope", "remote", "leaving", "strict transport", "goaway", "deadline", "starting", "went back", "authenticate", "audit received", "impersonate", "authorize"} {
		want[name] = 0
	}
	s, to := filtered(t)
	var scope *request.Scope
	got := map[string]int{}
	var steps []step
	for _, one := range s.steps(acquaintance{}) {
		if one.filter == nil {
			continue
		}
		filter := one.filter
		one.filter = func(next http.Handler) http.Handler {
			before := 0
			within := filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { before = leftToDo(scope) }()
				next.ServeHTTP(w, r)
			}))
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { got[one.name] = leftToDo(scope) - before }()
				within.ServeHTTP(w, r)
			})
		}
		steps = append(steps, one)
	}
	begun := 0
	h := chain(steps, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{}")
		if scope = request.From(r.Context()); !scope.CanDetach() {
			t.Fatal("the handler has to stay")
		}
		scope.Detach(func(any) { begun++ })
	}))
	state := func(when, event string, lasting float64, lines int) {
		t.Helper()
		if last, n := to.stages[len(to.stages)-1], strings.Count(to.line.String(), "msg=request"); last != event || s.lasting(t) != lasting || n != lines {
			t.Errorf("%s: last event %q, want %q; %v requests last, want %v; %d lines, want %d", when, last, event, s.lasting(t), lasting, n, lines)
		}
	}
	for round := range 3 {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, longWatch()); w.Code != http.StatusOK || begun != round+1 {
			t.Fatalf("%d %s, begun %d", w.Code, w.Body, begun)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("functions for the end, by filter: %v, want %v", got, want)
		}
		state("before the end", "ResponseStarted", 1, 2*round)
		open, w := scope, httptest.NewRecorder()
		if h.ServeHTTP(w, longWatch()); scope != open || w.Code != http.StatusTooManyRequests {
			t.Errorf("another watch before the end: %d", w.Code)
		}
		if rest := open.Ended(nil); rest != nil {
			t.Error(rest)
		}
		state("behind the end", "ResponseComplete", 0, 2*round+2)
	}
	if err := s.cfg.Tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(slices.Clone(to.spans), func(name string) bool { return name != "GET /api/v1/pods" })); n != 6 { // with those that were refused
		t.Errorf("%d spans of 6 have ended: %q", n, to.spans)
	}
}

// TestFiltersOfOthersStay: filters of others do not know of answers that go on without their handlers,
// so that handlers stay behind them.
func TestFiltersOfOthersStay(t *testing.T) {
	passes := func(next http.Handler) http.Handler { return next }
	for name, c := range map[string]struct {
		around filters.Filter
		want   bool
	}{"some": {filters.Around([]filters.Filter{passes}), false}, "none": {filters.Around(nil), true}} {
		called := false
		chain([]step{{"scope", filters.Scope(time.Now)}, {"around", c.around}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			if got := request.From(r.Context()).CanDetach(); got != c.want {
				t.Errorf("%s: a handler may return: %v", name, got)
			}
		})).ServeHTTP(httptest.NewRecorder(), longWatch())
		if !called {
			t.Error(name)
		}
	}
	asked := false
	inner := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = true
			next.ServeHTTP(w, r)
		})
	}
	config := Config{Log: slog.New(slog.DiscardHandler), Around: []filters.Filter{inner}, Feature: func(string) bool { return false }}
	for _, one := range (&Server{cfg: config, Metrics: metrics.New(kinds.NewCatalogue(nil), time.Now),
		Cache: cache.New(nil), flows: flow.New(cache.New(nil), flow.Config{}), watching: t.Context()}).steps(stranger{}) {
		if one.name == "around" {
			chain([]step{{"scope", filters.Scope(time.Now)}, one}, http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), longWatch())
		}
	}
	if !asked {
		t.Error("filters of others are not asked")
	}
}
