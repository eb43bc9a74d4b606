package server

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics"
)

// The order of the filters is a decision, which this test repeats so that it does not change by
// accident.
func TestOrderOfFilters(t *testing.T) {
	s := &Server{cfg: Config{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Feature: func(string) bool { return false }}}
	s.Cache = cache.New(nil)
	s.Metrics, s.flows = metrics.New(kinds.NewCatalogue(nil), time.Now), flow.New(s.Cache, flow.Config{})
	s.watching = t.Context()
	var got []string
	for _, step := range s.steps(stranger{}) {
		got = append(got, step.name)
	}
	want := []string{"scope", "remote", "metrics", "trace", "access log", "recover", "leaving", "strict transport", "goaway",
		"starting", "went back", "drain", "cross origin", "audit", "deadline", "authenticate", "audit received", "impersonate", "around", "long selectors", "in flight", "authorize", "revoked"}
	if !slices.Equal(got, want) {
		t.Errorf("filters are %q, want %q", got, want)
	}
}
