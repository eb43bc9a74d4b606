package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/release"
)

// full is a backend that takes no events.
type full struct{}

func (full) Name() string                         { return "log" }
func (full) Send(context.Context, [][]byte) error { return errors.New("no space left on device") }

// TestLostEventsAreLoggedOnce: requests do not cause a line each while a backend takes no events.
func TestLostEventsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	a := &Auditing{auditor: &audit.Auditor{Metrics: audit.NewMetrics()}}
	a.add(&auditMode{name: "log", mode: "blocking"}, full{}, 0, slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		if err := a.auditor.Sinks[0].Take([]byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "audit events are lost"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// TestLongEventsAreInTheFile: a request whose event is longer than a whole file may be is recorded too.
func TestLongEventsAreInTheFile(t *testing.T) {
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy"), filepath.Join(dir, "log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &AuditFlags{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddTo(flags)
	if err := flags.Parse([]string{"--audit-policy-file", policy, "--audit-log-path", path, "--audit-log-maxsize", "1"}); err != nil {
		t.Fatal(err)
	}
	a, err := o.Build(io.Discard, release.Default, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(&audit.Event{Level: audit.Metadata, AuditID: "long", RequestURI: "/?" + strings.Repeat("&", 900<<10), Verb: "get"})
	if err != nil {
		t.Fatal(err)
	}
	for _, sink := range a.auditor.Sinks {
		if err := sink.Take(line); err != nil {
			t.Fatal(err)
		}
	}
	logged, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(logged), `"auditID":"long"`) || !strings.Contains(string(logged), `"audit.k8s.io/truncated":"true"`) {
		t.Errorf("%v: %.200s", err, logged)
	}
}
