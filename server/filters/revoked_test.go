package filters_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestRevoked: a watch or connection ends within a minute after its user lost the right to it, the credential was
// revoked, or the right to impersonate was; not for a failure of the authorizer, nor for what others lost.
func TestRevoked(t *testing.T) {
	const watch, exec = "/api/v1/namespaces/a/pods?watch=1&fieldSelector=spec.nodeName%3Dn1&labelSelector=a%3Db", "/api/v1/namespaces/a/pods/p/exec?command=x"
	const socket = exec + "&stdout=1" // by GET
	type state struct {
		denied  string // attributes that are no longer allowed, as verb resource/subresource name
		failed  bool
		unread  bool // the authorizer cannot read an object
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
		"exec by GET":                         {socket, "", state{denied: "get pods/exec p"}, true},
		"exec by GET, its further verb":       {socket, "", state{denied: "create pods/exec p"}, true},
		"exec by GET, another verb":           {socket, "", state{denied: "update pods/exec p"}, false},
		"authorizer fails":                    {watch, "", state{denied: "watch pods/ ", failed: true}, false},
		"an object cannot be read":            {watch, "", state{denied: "watch pods/ ", unread: true}, false},
		"impersonating, an object likewise":   {watch, "jan", state{denied: "impersonate users/ jan", unread: true}, false},
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
					case s.unread:
						panic(&cache.Unreadable{})
					}
					return authx.NoOpinion, "", nil
				})
				user := authenticator(func() (*authx.Authenticated, bool, error) {
					return &authx.Authenticated{Identity: &authx.Identity{Name: "eva"}, StillValid: func(context.Context) bool { return !now.Load().revoked }}, true, nil
				})
				revoked := filters.NewRevoked(z, quiet)
				revoked.Further = func(i *request.Info) []string {
					if i.Subresource == "exec" && i.Verb == "get" {
						return []string{"create"}
					}
					return nil
				}
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
					serve(r, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, filters.EndWith(ctx, 0), filters.Authenticate(user, nil, quiet, fail),
						filters.Impersonate(z, filters.Impersonation{Constrained: constrained}, quiet, fail), filters.Authorize(z, nil, quiet, fail), revoked.Filter)
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

// TestRevokedImpersonation: whether an impersonation may go on is decided by the very attributes by which it was allowed.
func TestRevokedImpersonation(t *testing.T) {
	for _, constrained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			seen, count := map[string]int{}, 0
			z := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
				mu.Lock()
				defer mu.Unlock()
				count++
				seen[fmt.Sprintf("%s %s %q %q %s/%s %q %s", a.User.Name, a.Verb, a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Namespace, a.Name)]++
				return authx.Allow, "", nil
			})
			user := authenticator(func() (*authx.Authenticated, bool, error) {
				return &authx.Authenticated{Identity: &authx.Identity{Name: "eva"}}, true, nil
			})
			ctx, stop := context.WithCancel(t.Context())
			revoked := filters.NewRevoked(z, quiet)
			go func() { _ = revoked.Run(ctx) }()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1", nil)
			for name, value := range map[string]string{"User": "system:serviceaccount:a:b", "Group": "g", "Uid": "u", "Extra-K": "v"} {
				r.Header.Set("Impersonate-"+name, value)
			}
			go serve(r, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, filters.EndWith(ctx, 0), filters.Authenticate(user, nil, quiet, fail),
				filters.Impersonate(z, filters.Impersonation{Constrained: constrained}, quiet, fail), filters.Authorize(z, nil, quiet, fail), revoked.Filter)
			synctest.Wait()
			mu.Lock()
			first := len(seen)
			mu.Unlock()
			time.Sleep(time.Minute)
			stop()
			synctest.Wait()
			if first < 5 || len(seen) != first || count < 2*first {
				t.Errorf("constrained %v: %d questions at first, %d in all: %v", constrained, first, count, seen)
			}
		})
	}
}

// TestRevokedInSpiteOfOthers: an authorizer that another server makes slow, or that does not answer, for the requests of some
// users, delays the end of others little: its answers are awaited together.
func TestRevokedInSpiteOfOthers(t *testing.T) {
	const others = 100
	for name, answers := range map[string]time.Duration{"slow": time.Second, "silent": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer stop()
			var revoked atomic.Bool
			z := waiting(func(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
				if a.User.Name != "eva" {
					select {
					case <-time.After(answers):
					case <-ctx.Done():
						return authx.NoOpinion, "", ctx.Err()
					}
				}
				return authx.Allow, "", nil
			})
			all := filters.NewRevoked(z, quiet)
			go func() { _ = all.Run(ctx) }()
			open := map[string]*atomic.Int64{"eva": {}, "other": {}}
			for i := range 1 + others {
				user := "other"
				if i == 0 {
					user = "eva"
				}
				who := authenticator(func() (*authx.Authenticated, bool, error) {
					return &authx.Authenticated{Identity: &authx.Identity{Name: user}, StillValid: func(context.Context) bool { return user != "eva" || !revoked.Load() }}, true, nil
				})
				open[user].Add(1)
				go func() {
					defer open[user].Add(-1)
					serve(httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1", nil), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
						filters.EndWith(ctx, 0), filters.Authenticate(who, nil, quiet, fail), all.Filter)
				}()
			}
			time.Sleep(time.Hour)
			revoked.Store(true)
			time.Sleep(time.Minute) // two rounds and a pause
			if open["eva"].Load() != 0 || open["other"].Load() != others {
				t.Errorf("%s: %d of one and %d of %d watches are open", name, open["eva"].Load(), open["other"].Load(), others)
			}
		})
	}
}

// waiting is an authorizer that may wait.
type waiting func(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error)

// Authorize implements authx.Authorizer.
func (z waiting) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	return z(ctx, a)
}
