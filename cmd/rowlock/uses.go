package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server/request"
)

// Labels of Secrets that hold tokens.
const (
	legacyUsedLabel    = "kubernetes.io/legacy-token-last-used"
	legacyInvalidLabel = "kubernetes.io/legacy-token-invalid-since"
)

// noteTime bounds the writing of such a label, which a request waits for once a day.
const noteTime = 5 * time.Second

// tokenUses keeps account of service account tokens that should be given up: in
// metrics, in the audit log and, for those kept in Secrets, on the Secret.
type tokenUses struct {
	objects *live
	log     *slog.Logger

	legacyTotal, manualTotal, invalidTotal, staleTotal, validTotal prometheus.Counter
}

func newTokenUses(objects *live, log *slog.Logger) *tokenUses {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "serviceaccount_" + name + "_total", Help: help})
	}
	return &tokenUses{
		objects: objects, log: log,
		legacyTotal:  counter("legacy_tokens", "Uses of service account tokens that are kept in Secrets."),
		manualTotal:  counter("legacy_manual_token_uses", "Uses of such tokens that are not marked invalid."),
		invalidTotal: counter("invalid_legacy_auto_token_uses", "Uses of such tokens that are marked invalid, and so refused."),
		staleTotal:   counter("stale_tokens", "Uses of extended service account tokens that should have been renewed."),
		validTotal:   counter("valid_tokens", "Uses of extended service account tokens that need not be renewed yet."),
	}
}

func (u *tokenUses) collectors() []prometheus.Collector {
	return []prometheus.Collector{u.legacyTotal, u.manualTotal, u.invalidTotal, u.staleTotal, u.validTotal}
}

// extended notes a use of a token that lives longer than its holder asked for.
func (u *tokenUses) extended(ctx context.Context, subject string, overdue time.Duration) {
	if overdue <= 0 {
		u.validTotal.Inc()
		return
	}
	u.staleTotal.Inc()
	request.From(ctx).Annotate("authentication.k8s.io/stale-token",
		fmt.Sprintf("subject: %s, seconds after warning threshold: %d", subject, int64(overdue/time.Second)))
}

// legacy notes a use of a token that is kept in a Secret.
func (u *tokenUses) legacy(ctx context.Context, use serviceaccount.LegacyUse) {
	scope := request.From(ctx)
	if use.Invalid {
		u.invalidTotal.Inc()
		scope.Annotate("authentication.k8s.io/legacy-token-invalidated", use.Secret+"/"+use.Namespace)
	} else {
		u.legacyTotal.Inc()
		u.manualTotal.Inc()
		scope.Annotate("authentication.k8s.io/legacy-token", use.Subject)
		scope.Annotate("authentication.k8s.io/legacy-token-manual-secret", use.Secret)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	if use.LastUsed == today {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	s := u.objects.server.Load()
	if s == nil {
		return
	}
	path := "/api/v1/namespaces/" + use.Namespace + "/secrets/" + use.Secret
	patch := map[string]any{"metadata": map[string]any{"labels": map[string]string{legacyUsedLabel: today}}}
	if err := s.Call(ctx, "kube-apiserver", http.MethodPatch, path, "application/merge-patch+json", patch, nil); err != nil {
		u.log.Warn("the use of a token cannot be noted on its Secret", "namespace", use.Namespace, "secret", use.Secret, "error", err)
	}
}
