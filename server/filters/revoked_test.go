package filters_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
)

// TestRevoked: a watch or connection ends within a minute after its user lost the right to it, the credential was
// revoked, or the right to impersonate was; not for a failure of the authorizer, nor for what others lost.
func TestRevoked(t *testing.T) {
	const watch, exec = "/api/v1/namespaces/a/pods?watch=1&fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db", "/api/v1/namespaces/a/pods/p/exec?command=x"
	type state struct {
		denied  string // attributes that are no longer allowed, as verb resource/subresource name
		failed  bool
		revoked bool
	}
	for name, tc := range map[string]struct {
		path, as string
		then     state
		ends     bool
	}{
		"watch":                               {watch, "", state{denied: "watch pods/ "}, true},
		"watch, another right":                {watch, "", state{denied: "list pods/ "}, false},
		"watch of one":                        {"/api/v1/namespaces/a/pods/p?watch=1", "", state{denied: "get pods/ p"}, true},
		"exec":                                {exec, "", state{denied: "create pods/exec p"}, true},
		"authorizer fails":                    {watch, "", state{denied: "watch pods/ ", failed: true}, false},
		"credential":                          {exec, "", state{revoked: true}, true},
		"impersonated":                        {watch, "jan", state{denied: "watch pods/ "}, true},
		"impersonating":                       {watch, "jan", state{denied: "impersonate users/ jan"}, true},
		"impersonating, and authorizer fails": {watch, "jan", state{denied: "impersonate users/ jan", failed: true}, false},
		"this request in a mode":              {watch, "jan", state{denied: "impersonate-on:user-info:watch pods/ "}, true},
		"another request in a mode":           {watch, "jan", state{denied: "impersonate-on:user-info:list pods/ "}, false},
		"a mode, and authorizer fails":        {watch, "jan", state{denied: "impersonate-on:user-info:watch pods/ ", failed: true}, false},
		"nothing":                             {watch, "jan", state{}, false},
	} {
		for _, constrained := range []bool{false, true} {
			if !constrained && strings.HasPrefix(tc.then.denied, "impersonate-on:") {
				continue // there are no modes
			}
			synctest.Test(t, func(t *testing.T) {
				then := tc.then
				if constrained {
					then.denied = strings.Replace(then.denied, "impersonate ", "impersonate:user-info ", 1)
				}
				var now atomic.Pointer[state]
				now.Store(&state{})
				selected := atomic.Bool{}
				z := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
					if a.Verb == "watch" && a.Name == "" {
						selected.Store(len(a.FieldRequirements) == 1 && len(a.LabelRequirements) == 1)
					}
					s := now.Load()
					switch {
					case s.denied != a.Verb+" "+a.Resource+"/"+a.Subresource+" "+a.Name:
						return authx.Allow, "", nil
					case s.failed:
						return authx.NoOpinion, "", errors.New("broken")
					}
					return authx.NoOpinion, "", nil
				})
				user := authenticator(func() (*authx.Authenticated, bool, error) {
					return &authx.Authenticated{Identity: &authx.Identity{Name: "eva"}, Stands: func(context.Context) bool { return !now.Load().revoked }}, true, nil
				})
				revoked := filters.NewRevoked(z, quiet)
				ctx, stop := context.WithCancel(t.Context())
				var loop, open atomic.Bool
				loop.Store(true)
				go func() {
					_ = revoked.Run(ctx)
					loop.Store(false)
				}()
				method := http.MethodGet
				if tc.path == exec {
					method = http.MethodPost
				}
				r := httptest.NewRequestWithContext(ctx, method, tc.path, nil)
				if tc.as != "" {
					r.Header.Set("Impersonate-User", tc.as)
				}
				open.Store(true)
				go func() {
					serve(r, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, filters.EndWith(ctx, 0), filters.Authenticate(user, quiet, fail),
						filters.Impersonate(z, filters.Impersonation{Constrained: constrained}, quiet, fail), filters.Authorize(z, quiet, fail), revoked.Filter)
					open.Store(false)
				}()
				time.Sleep(10 * time.Minute)
				if !open.Load() {
					t.Fatalf("%s: it ends without a reason", name)
				}
				selected.Store(false)
				now.Store(&then)
				time.Sleep(time.Minute)
				if open.Load() == tc.ends {
					t.Errorf("%s: it is open: %v", name, open.Load())
				}
				if tc.path == watch && tc.then.denied == "" && !tc.then.revoked && !selected.Load() {
					t.Errorf("%s: the authorizer does not see the selectors", name)
				}
				stop()
				synctest.Wait()
				if loop.Load() || open.Load() {
					t.Errorf("%s: something goes on", name)
				}
			})
		}
	}
}
