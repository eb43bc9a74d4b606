package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/audit"
)

// full is a backend that takes no events.
type full struct{}

func (full) Name() string                         { return "log" }
func (full) Send(context.Context, [][]byte) error { return errors.New("no space left on device") }

// TestLostEventsAreLoggedOnce: requests do not cause a line each while a backend takes no events.
func TestLostEventsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	a := &Auditing{auditor: &audit.Auditor{Metrics: audit.NewMetrics()}}
	a.add(&auditMode{name: "log", mode: "blocking"}, full{}, slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		if err := a.auditor.Sinks[0].Take([]byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "audit events are lost"); n != 1 {
		t.Errorf("%d lines", n)
	}
}
