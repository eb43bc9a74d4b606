package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/request"
)

// calls records calls of the API, and the time that each may take.
type calls struct {
	made []string
	err  error
}

func (c *calls) Call(ctx context.Context, agent, method, path, contentType string, body, _ any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	end, _ := ctx.Deadline()
	c.made = append(c.made, fmt.Sprintf("%s: %s %s %s %s within %v", agent, method, path, contentType, b, time.Until(end)))
	return c.err
}

// auditor stands for an audit event: a scope keeps annotations only where there is one.
type auditor struct{ request.Auditor }

// counted gathers the metrics that are not 0.
func counted(t *testing.T, m *access.TokenMetrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if v := f.Metric[0].Counter.GetValue(); v != 0 {
			got[f.GetName()] = v
		}
	}
	return got
}

func TestTokenUses(t *testing.T) {
	const subject = "system:serviceaccount:ns:app"
	use := serviceaccount.LegacyUse{Namespace: "ns", Secret: "kept", Subject: subject}
	on := func(day string, invalid bool) func(context.Context, *access.TokenUses) {
		use := use
		use.LastUsed, use.Invalid = day, invalid
		return func(ctx context.Context, u *access.TokenUses) { u.Legacy(ctx, use) }
	}
	overdue := func(d time.Duration) func(context.Context, *access.TokenUses) {
		return func(ctx context.Context, u *access.TokenUses) { u.Extended(ctx, subject, d) }
	}
	// Time begins with 2000-01-01 here.
	const noted = `kube-apiserver: PATCH /api/v1/namespaces/ns/secrets/kept application/merge-patch+json ` +
		`{"metadata":{"labels":{"kubernetes.io/legacy-token-last-used":"2000-01-01"}}} within 5s`
	good := map[string]float64{"serviceaccount_legacy_tokens_total": 1, "serviceaccount_legacy_manual_token_uses_total": 1}
	goodAudit := map[string]string{"authentication.k8s.io/legacy-token": subject, "authentication.k8s.io/legacy-token-manual-secret": "kept"}
	refused := map[string]float64{"serviceaccount_invalid_legacy_auto_token_uses_total": 1}
	refusedAudit := map[string]string{"authentication.k8s.io/legacy-token-invalidated": "kept/ns"}
	for _, tc := range []struct {
		name    string
		use     func(context.Context, *access.TokenUses)
		fails   error
		metrics map[string]float64
		audit   map[string]string
		calls   []string
		logs    string
	}{
		{"a first use", on("", false), nil, good, goodAudit, []string{noted}, ""},
		{"a use on another day", on("1999-12-31", false), nil, good, goodAudit, []string{noted}, ""},
		{"a second use on a day", on("2000-01-01", false), nil, good, goodAudit, nil, ""},
		{"a use of an invalid token", on("", true), nil, refused, refusedAudit, []string{noted}, ""},
		{"a second use of an invalid token", on("2000-01-01", true), nil, refused, refusedAudit, nil, ""},
		{"a Secret that cannot be written", on("", false), errors.New("no such luck"), good, goodAudit, []string{noted}, "no such luck"},
		{"an extended token", overdue(-time.Minute), nil, map[string]float64{"serviceaccount_valid_tokens_total": 1}, nil, nil, ""},
		{"an extended token at its threshold", overdue(0), nil, map[string]float64{"serviceaccount_valid_tokens_total": 1}, nil, nil, ""},
		{"an extended token past its threshold", overdue(90 * time.Second), nil, map[string]float64{"serviceaccount_stale_tokens_total": 1},
			map[string]string{"authentication.k8s.io/stale-token": "subject: " + subject + ", seconds after warning threshold: 90"}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				api := &calls{err: tc.fails}
				u := &access.TokenUses{API: api, Metrics: access.NewTokenMetrics(), Log: slog.New(slog.NewTextHandler(&logged, nil))}
				scope := &request.Scope{Audit: auditor{}}
				tc.use(request.With(t.Context(), scope), u)
				if d := cmp.Diff(tc.metrics, counted(t, u.Metrics)); d != "" {
					t.Errorf("metrics: %s", d)
				}
				if d := cmp.Diff(tc.audit, scope.Annotations); d != "" {
					t.Errorf("annotations: %s", d)
				}
				if d := cmp.Diff(tc.calls, api.made); d != "" {
					t.Errorf("calls: %s", d)
				}
				if got := logged.String(); (got != "") != (tc.logs != "") || !strings.Contains(got, tc.logs) {
					t.Errorf("logged %q", got)
				}
			})
		})
	}
}

// TestTokenUsesOfOneSecret: while the label of a Secret cannot be written, requests with its token cause one write and one log
// line a minute; those of other Secrets do not wait for that.
func TestTokenUsesOfOneSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		api := &calls{err: errors.New("no such luck")}
		u := &access.TokenUses{API: api, Metrics: access.NewTokenMetrics(), Log: slog.New(slog.NewTextHandler(&logged, nil))}
		for range 3 {
			for range 100 {
				u.Legacy(t.Context(), serviceaccount.LegacyUse{Namespace: "ns", Secret: "kept"})
			}
			time.Sleep(2 * time.Minute)
		}
		if lines := strings.Count(logged.String(), "\n"); len(api.made) != 3 || lines != 3 {
			t.Errorf("300 requests in three minutes: %d writes, %d log lines", len(api.made), lines)
		}
		for i := range 5_000 {
			u.Legacy(t.Context(), serviceaccount.LegacyUse{Namespace: "ns", Secret: fmt.Sprint("other", i)})
		}
		if len(api.made) != 5_003 {
			t.Errorf("%d writes for 5,000 other Secrets", len(api.made)-3)
		}
	})
}
