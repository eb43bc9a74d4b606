package filters_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestOutlive: an answer that goes on without its handler leaves what others leave when it
// ends, and not before, whatever it ends with.
func TestOutlive(t *testing.T) {
	started := []string{"RequestReceived u", "ResponseStarted u 200"}
	for name, tc := range map[string]struct {
		ends  any // what it panics with
		early any // what a filter panics with on the way out
		want  []string
		lines int // of the access log
		oops  int // panics that are counted
		abort bool
	}{
		"well":                {want: []string{"ResponseComplete u 200"}, lines: 1},
		"cut":                 {ends: http.ErrAbortHandler, want: []string{"ResponseComplete u 200"}, abort: true},
		"a panic":             {ends: "oh", want: []string{"Panic u 500 APIServer panic'd: oh"}, oops: 1, abort: true},
		"a panic of a filter": {early: "oh", want: []string{"Panic u 500 APIServer panic'd: oh"}, oops: 1, abort: true},
	} {
		t.Run(name, func(t *testing.T) {
			sink, logged, oops := &stages{}, &bytes.Buffer{}, 0
			policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: RequestResponse}"))
			if err != nil {
				t.Fatal(err)
			}
			a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{sink}, Metrics: audit.NewMetrics(), Clock: time.Now}
			var scope *request.Scope
			var ctx context.Context
			begun := 0
			last := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "{}")
				scope, ctx = request.From(r.Context()), r.Context()
				if !scope.CanDetach() {
					t.Fatal("the handler has to stay")
				}
				scope.Detach(func(panicked any) {
					if begun++; panicked != tc.early {
						t.Errorf("goes on with %v", panicked)
					}
				})
			}
			panics := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r)
					if tc.early != nil {
						panic(tc.early)
					}
				})
			}
			log := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			func() {
				defer func() {
					if p := recover(); p != tc.early {
						t.Errorf("the filters end with %v", p)
					}
				}()
				serve(httptest.NewRequest("GET", "/api/v1/pods?watch=1", nil), last,
					filters.AccessLog(log, func(string) bool { return false }), filters.Recover(quiet, func() { oops++ }),
					filters.EndWith(t.Context(), 0), filters.Audit(a, filters.Audited{}, quiet), filters.Authenticate(known{}, nil, quiet, fail), filters.AuditReceived(a), panics)
			}()
			if begun != 1 || !slices.Equal(sink.seen, started) || logged.Len() > 0 || ctx.Err() != nil {
				t.Errorf("before the end: begun %d, %q, %s, %v", begun, sink.seen, logged, ctx.Err())
			}
			ends := tc.ends
			if tc.early != nil {
				ends = tc.early
			}
			if rest := scope.Ended(ends); (rest != nil) != tc.abort || tc.abort && rest != http.ErrAbortHandler {
				t.Errorf("it ends with %v", rest)
			}
			if again := scope.Ended(nil); again != nil {
				t.Error(again)
			}
			if want := append(started, tc.want...); !slices.Equal(sink.seen, want) {
				t.Errorf("%q, want %q", sink.seen, want)
			}
			lines := strings.Count(logged.String(), "msg=request")
			if early := tc.early != nil; lines != tc.lines && !early || oops != tc.oops || scope.Aborted != tc.abort || ctx.Err() == nil {
				t.Errorf("%d lines, %d panics, aborted %v, %v", lines, oops, scope.Aborted, ctx.Err())
			}
		})
	}
}

// TestStays: where a filter does not know of such answers, the handler stays.
func TestStays(t *testing.T) {
	serve(httptest.NewRequest("GET", "/api/v1/pods?watch=1", nil), func(_ http.ResponseWriter, r *http.Request) {
		s := request.From(r.Context())
		before := s.CanDetach()
		if s.ForbidDetach(); !before || s.CanDetach() {
			t.Error(before, s.CanDetach())
		}
	})
}
