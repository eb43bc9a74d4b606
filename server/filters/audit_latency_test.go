package filters_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestAuditLatency: the last event of a request that took more than half a second shows how long its phases and all of it took; that
// of a watch does not.
func TestAuditLatency(t *testing.T) {
	const prefix = "apiserver.latency.k8s.io/"
	for name, tc := range map[string]struct {
		path    string
		handler time.Duration
		want    map[string]string
	}{
		"fast":  {"/api/v1/pods", 50 * time.Millisecond, nil},
		"slow":  {"/api/v1/pods", 51 * time.Millisecond, map[string]string{"authentication": "100ms", "impersonation": "150ms", "authorization": "150ms", "etcd": "20ms", "total": "501ms"}},
		"watch": {"/api/v1/pods?watch=1", time.Hour, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			out := &lines{}
			policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Metadata, omitStages: [RequestReceived, ResponseStarted]}"))
			if err != nil {
				t.Fatal(err)
			}
			a := &audit.Auditor{Policy: policy, Sinks: []audit.Sink{out}, Metrics: audit.NewMetrics(), Clock: time.Now}
			user := authenticator(func() (*authx.Authenticated, bool, error) {
				time.Sleep(100 * time.Millisecond)
				return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}}, true, nil
			})
			z := waiting(func(context.Context, *authx.Attributes) (authx.Decision, string, error) {
				time.Sleep(150 * time.Millisecond)
				return authx.Allow, "", nil
			})
			r := httptest.NewRequest("GET", tc.path, nil)
			r.Header.Set("Impersonate-User", "v")
			serve(r, func(w http.ResponseWriter, r *http.Request) {
				for range 2 { // a write that is tried again
					began := time.Now()
					time.Sleep(10 * time.Millisecond)
					request.From(r.Context()).Took(request.Commit, began)
				}
				time.Sleep(30 * time.Millisecond)
				time.Sleep(tc.handler)
				ok(w, r)
			}, filters.Audit(a, filters.Audited{}, quiet), filters.Authenticate(user, nil, quiet, fail), filters.AuditReceived(a),
				filters.Impersonate(z, filters.Impersonation{}, quiet, fail), filters.Authorize(z, nil, quiet, fail))
			var event struct{ Annotations map[string]string }
			if err := json.Unmarshal([]byte(out.all), &event); err != nil {
				t.Fatal(err, out.all)
			}
			got := map[string]string{}
			for key, value := range event.Annotations {
				if key, ok := strings.CutPrefix(key, prefix); ok {
					got[key] = value
				}
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		})
	}
}
