package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/request"
)

// Labels of Secrets that hold tokens.
const (
	legacyUsedLabel    = "kubernetes.io/legacy-token-last-used"
	legacyInvalidLabel = "kubernetes.io/legacy-token-invalid-since"
)

const (
	// labelTime bounds the write of such a label, for which a request waits once a day.
	labelTime = 5 * time.Second
	// labelPause is the least time between two such writes for one Secret: each request with its token would write again
	// while another write is in progress, or fails.
	labelPause = time.Minute
	// maxTried bounds the Secrets whose last write is remembered.
	maxTried = 1024
)

// TokenMetrics counts uses of service account tokens that should be replaced.
type TokenMetrics struct {
	*metricset.Set
	legacy, manual, invalid, stale, valid prometheus.Counter
}

// NewTokenMetrics makes the metrics.
func NewTokenMetrics() *TokenMetrics {
	s := metricset.New("serviceaccount_")
	return &TokenMetrics{
		Set:     s,
		legacy:  s.Counter("legacy_tokens_total", "Uses of service account tokens that are kept in Secrets."),
		manual:  s.Counter("legacy_manual_token_uses_total", "Uses of such tokens that are not marked invalid."),
		invalid: s.Counter("invalid_legacy_auto_token_uses_total", "Uses of such tokens that are marked invalid, and so refused."),
		stale:   s.Counter("stale_tokens_total", "Uses of extended service account tokens that should have been renewed."),
		valid:   s.Counter("valid_tokens_total", "Uses of extended service account tokens that need not be renewed yet."),
	}
}

// TokenUses records uses of such tokens: in metrics, in the audit log and, for those
// stored in Secrets, on the Secret.
type TokenUses struct {
	API     API
	Metrics *TokenMetrics
	Log     *slog.Logger

	mu    sync.Mutex
	tried map[secretKey]time.Time // when the label of a Secret was last written, or was to be
}

type secretKey struct{ namespace, name string }

// try reports whether the label of a Secret may be written now.
func (u *TokenUses) try(secret secretKey, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.tried[secret]; ok && now.Sub(last) < labelPause {
		return false
	}
	if u.tried == nil || len(u.tried) >= maxTried {
		u.tried = map[secretKey]time.Time{}
	}
	u.tried[secret] = now
	return true
}

// Extended records a use of a token that lives longer than its holder requested.
func (u *TokenUses) Extended(ctx context.Context, subject string, overdue time.Duration) {
	if overdue <= 0 {
		u.Metrics.valid.Inc()
		return
	}
	u.Metrics.stale.Inc()
	request.From(ctx).Annotate("authentication.k8s.io/stale-token",
		fmt.Sprintf("subject: %s, seconds after warning threshold: %d", subject, int64(overdue/time.Second)))
}

// Legacy records a use of a token that is stored in a Secret.
func (u *TokenUses) Legacy(ctx context.Context, use serviceaccount.LegacyUse) {
	scope := request.From(ctx)
	if use.Invalid {
		u.Metrics.invalid.Inc()
		scope.Annotate("authentication.k8s.io/legacy-token-invalidated", use.Secret+"/"+use.Namespace)
	} else {
		u.Metrics.legacy.Inc()
		u.Metrics.manual.Inc()
		scope.Annotate("authentication.k8s.io/legacy-token", use.Subject)
		scope.Annotate("authentication.k8s.io/legacy-token-manual-secret", use.Secret)
	}
	now := time.Now()
	today := now.UTC().Format(time.DateOnly)
	if use.LastUsed == today || !u.try(secretKey{use.Namespace, use.Secret}, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, labelTime)
	defer cancel()
	path := "/api/v1/namespaces/" + use.Namespace + "/secrets/" + use.Secret
	patch := map[string]any{"metadata": map[string]any{"labels": map[string]string{legacyUsedLabel: today}}}
	if err := u.API.Call(ctx, "kube-apiserver", http.MethodPatch, path, "application/merge-patch+json", patch, nil); err != nil {
		u.Log.Warn("the use of a token cannot be noted on its Secret", "namespace", use.Namespace, "secret", use.Secret, "error", err)
	}
}
