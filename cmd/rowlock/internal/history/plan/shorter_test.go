package plan_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/plan"
)

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// forgets returns a configuration for a server that keeps no past of resources whose paths end so.
func forgets(cfg *rest.Config, ends string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, ends) || r.URL.Query().Get("resourceVersionMatch") == "" {
				return next.RoundTrip(r)
			}
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
			return &http.Response{StatusCode: http.StatusGone, Status: "410 Gone", Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
		})
	})
	return cfg
}

// TestShorterPast: resources with a shorter retention are named, and the others are
// restored; if none is kept for so long, the result is an error and not an empty plan.
func TestShorterPast(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.changed()
	some := as(t, s.srv, forgets(s.srv.Config(), "/secrets"))
	r := &plan.Restore{Finder: some.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all)}
	p := plan.New()
	if err := r.Plan(t.Context(), p); err != nil || len(p.Steps) != 1 || !strings.Contains(strings.Join(p.Notes, "\n"), "secrets are left out") {
		t.Errorf("%v: %d steps, %v", err, len(p.Steps), p.Notes)
	}
	s.remove("cm/a")
	u := &plan.Undelete{Finder: some.finder(), Dependents: true}
	p = plan.New()
	if err := u.Plan(t.Context(), p, s.target("cm/a")); err != nil || len(p.Steps) != 1 || !strings.Contains(strings.Join(p.Notes, "\n"), "among secrets are not looked for") {
		t.Errorf("%v: %d steps, %v", err, len(p.Steps), p.Notes)
	}
	none := as(t, s.srv, forgets(s.srv.Config(), ""))
	for name, named := range map[string]bool{"all": false, "named": true} {
		r = &plan.Restore{Finder: none.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all), Named: named}
		if err := r.Plan(context.Background(), plan.New()); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
