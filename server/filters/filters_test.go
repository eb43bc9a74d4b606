package filters_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

var quiet = slog.New(slog.DiscardHandler)

func fail(w http.ResponseWriter, r *http.Request, err error) {
	st, _ := status.Of(err, schema.GroupResource{})
	status.Write(w, r, st, forms.Forms{})
}

// serve passes a request through Scope and filters to last.
func serve(r *http.Request, last http.HandlerFunc, list ...filters.Filter) *httptest.ResponseRecorder {
	var h http.Handler = last
	for _, f := range slices.Backward(append([]filters.Filter{filters.Scope(time.Now)}, list...)) {
		h = f(h)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func as(id *authx.Identity) filters.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).User = id
			next.ServeHTTP(w, r)
		})
	}
}

func ok(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }

func message(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var st struct{ Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return st.Message
}

type authorizer func(*authx.Attributes) (authx.Decision, string, error)

func (f authorizer) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	return f(a)
}

type authenticator func() (*authx.Authenticated, bool, error)

func (f authenticator) Authenticate(*http.Request) (*authx.Authenticated, bool, error) { return f() }

// TestAuthenticate: an authenticated user has a name, and a client without a place is not answered that its
// credential is invalid.
func TestAuthenticate(t *testing.T) {
	for _, c := range []struct {
		name string
		who  *authx.Authenticated
		err  error
		code int
	}{
		{"somebody", &authx.Authenticated{Identity: &authx.Identity{Name: "jane"}}, nil, 200},
		{"nobody", &authx.Authenticated{Identity: &authx.Identity{Groups: []string{authx.GroupMasters}}}, nil, 401},
		{"nothing", &authx.Authenticated{}, nil, 401},
		{"nil", nil, nil, 401},
		{"bad", nil, errors.New("bad"), 401},
		{"busy", nil, fmt.Errorf("the webhook: %w", authx.ErrBusy), 429},
	} {
		reached := false
		a := authenticator(func() (*authx.Authenticated, bool, error) { return c.who, true, c.err })
		w := serve(httptest.NewRequest("GET", "/", nil), func(http.ResponseWriter, *http.Request) { reached = true }, filters.Authenticate(a, nil, quiet, fail))
		if w.Code != c.code || reached != (c.code == 200) || (w.Header().Get("Retry-After") != "") != (c.code == 429) {
			t.Errorf("%s: %d, reached %v, %v", c.name, w.Code, reached, w.Header())
		}
	}
}

func TestAuthorize(t *testing.T) {
	fay := &authx.Identity{Name: "<fay>"}
	for _, c := range []struct {
		url      string
		decision authx.Decision
		reason   string
		err      error
		code     int
		text     string
	}{
		{"/api/v1/pods", authx.Allow, "", nil, 200, ""},
		{"/api/v1/pods", authx.Allow, "", errors.New("odd"), 200, ""},
		{"/api/v1/pods", authx.NoOpinion, "", nil, 403, `pods is forbidden: User "&lt;fay&gt;" cannot list resource "pods" in API group "" at the cluster scope`},
		{"/apis/apps/v1/namespaces/a/deployments/d/scale", authx.Deny, "because", nil, 403, `deployments.apps "d" is forbidden: User "&lt;fay&gt;" cannot get resource "deployments/scale" in API group "apps" in the namespace "a": because`},
		{"/metrics", authx.NoOpinion, "", nil, 403, `forbidden: User "&lt;fay&gt;" cannot get path "/metrics"`},
		{"/metrics", authx.NoOpinion, "", errors.New("down"), 500, ""},
	} {
		z := authorizer(func(*authx.Attributes) (authx.Decision, string, error) { return c.decision, c.reason, c.err })
		w := serve(httptest.NewRequest("GET", c.url, nil), ok, as(fay), filters.Authorize(z, nil, quiet, fail))
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", c.url, w.Code, c.code)
		}
		if c.text != "" && message(t, w) != c.text {
			t.Errorf("%s: %s, want %s", c.url, message(t, w), c.text)
		}
		if c.code == 500 && w.Body.String() != "Internal Server Error: \"/metrics\": down\n" {
			t.Errorf("%s", w.Body)
		}
	}
}

// A watch of one object by the path that gets it takes both rights; all other watches
// take their own alone.
func TestAuthorizeWatchOfOne(t *testing.T) {
	for _, c := range []struct {
		url, may, asked string
		code            int
	}{
		{"/api/v1/namespaces/a/pods/x?watch=true", "", "get x", 403},
		{"/api/v1/namespaces/a/pods/x?watch=true", "watch", "get x", 403},
		{"/api/v1/namespaces/a/pods/x?watch=true", "get", "get x,watch x", 403},
		{"/api/v1/namespaces/a/pods/x?watch=true", "get watch", "get x,watch x", 200},
		{"/api/v1/watch/namespaces/a/pods/x", "watch", "watch x", 200},
		{"/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Dx", "watch", "watch x", 200},
		{"/api/v1/namespaces/a/pods?watch=true", "watch", "watch ", 200},
		{"/api/v1/namespaces/a/pods/x", "get", "get x", 200},
	} {
		var asked []string
		z := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
			asked = append(asked, a.Verb+" "+a.Name)
			if slices.Contains(strings.Fields(c.may), a.Verb) {
				return authx.Allow, "", nil
			}
			return authx.NoOpinion, "", nil
		})
		w := serve(httptest.NewRequest("GET", c.url, nil), ok, as(&authx.Identity{Name: "fay"}), filters.Authorize(z, nil, quiet, fail))
		if got := strings.Join(asked, ","); w.Code != c.code || got != c.asked {
			t.Errorf("%s with %q: %d after asking %q, want %d after %q", c.url, c.may, w.Code, got, c.code, c.asked)
		}
	}
}

// TestImpersonationRights: each part of an identity is asked about as what it is, in the
// words of a stock server, until one is refused.
func TestImpersonationRights(t *testing.T) {
	headers := http.Header{
		"Impersonate-User": {"system:serviceaccount:a:b"}, "Impersonate-Group": {"system:masters", "x"}, "Impersonate-Uid": {"7"},
		"Impersonate-Extra-Acme.com%2fscopes": {"s", "t"},
	}
	all := []string{
		"/ serviceaccounts  b in a", "/ groups  system:masters in ", "/ groups  x in ",
		"authentication.k8s.io/v1 userextras acme.com/scopes s in ", "authentication.k8s.io/v1 userextras acme.com/scopes t in ", "authentication.k8s.io/v1 uids  7 in ",
	}
	for allowed := range len(all) + 1 {
		var asked []string
		z := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
			if a.User.Name != "actor" || a.Verb != "impersonate" || !a.ResourceRequest {
				t.Errorf("asked about %+v", a)
			}
			asked = append(asked, fmt.Sprintf("%s/%s %s %s %s in %s", a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Name, a.Namespace))
			if len(asked) > allowed {
				return authx.NoOpinion, "", nil
			}
			return authx.Allow, "", nil
		})
		r := httptest.NewRequest("GET", "/version", nil)
		r.Header = headers.Clone()
		w := serve(r, ok, as(&authx.Identity{Name: "actor"}), filters.Impersonate(z, filters.Impersonation{}, quiet, fail))
		if want := all[:min(allowed+1, len(all))]; !slices.Equal(asked, want) || (w.Code == 200) != (allowed == len(all)) {
			t.Errorf("with %d allowed: %d after asking %q, want %q", allowed, w.Code, asked, want)
		}
	}
}

func TestImpersonate(t *testing.T) {
	allow := authorizer(func(a *authx.Attributes) (authx.Decision, string, error) {
		if a.User.Name == "actor" && a.Verb == "impersonate" && a.Name != "no" {
			return authx.Allow, "", nil
		}
		return authx.NoOpinion, "", nil
	})
	for _, c := range []struct {
		name    string
		headers http.Header
		code    int
		who     string
	}{
		{"none", http.Header{}, 200, "actor|"},
		{"user", http.Header{"Impersonate-User": {"bob"}}, 200, "bob|system:authenticated"},
		{"groups", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"x", "y"}}, 200, "bob|x,y,system:authenticated"},
		{"account", http.Header{"Impersonate-User": {"system:serviceaccount:a:b"}}, 200, "system:serviceaccount:a:b|system:serviceaccounts,system:serviceaccounts:a,system:authenticated"},
		{"account with group", http.Header{"Impersonate-User": {"system:serviceaccount:a:b"}, "Impersonate-Group": {"x"}}, 200, "system:serviceaccount:a:b|x,system:authenticated"},
		{"anonymous", http.Header{"Impersonate-User": {authx.Anonymous}}, 200, "system:anonymous|system:unauthenticated"},
		{"anonymous in a group", http.Header{"Impersonate-User": {authx.Anonymous}, "Impersonate-Group": {"system:authenticated"}}, 200, "system:anonymous|system:authenticated,system:unauthenticated"},
		{"not authenticated", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"system:unauthenticated"}}, 200, "bob|system:unauthenticated"},
		{"like an account", http.Header{"Impersonate-User": {"system:serviceaccount:A:b"}}, 200, "system:serviceaccount:A:b|system:authenticated"},
		{"refused user", http.Header{"Impersonate-User": {"no"}}, 403, ""},
		{"refused group", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"x", "no"}}, 403, ""},
		{"refused extra", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Extra-Scopes": {"no"}}, 403, ""},
		{"nobody", http.Header{"Impersonate-User": {""}, "Impersonate-Uid": {""}}, 200, "actor|"},
		{"many groups", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": slices.Repeat([]string{"x"}, 511)}, 200, "bob|" + strings.Repeat("x,", 511) + "system:authenticated"},
		{"too many groups", http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": slices.Repeat([]string{"x"}, 512)}, 400, ""},
		{"too many groups of nobody", http.Header{"Impersonate-Group": slices.Repeat([]string{"x"}, 5000)}, 400, ""},
		{"group without user", http.Header{"Impersonate-Group": {"x"}}, 500, ""},
	} {
		r := httptest.NewRequest("GET", "/version", nil)
		r.Header = c.headers
		var got string
		w := serve(r, func(w http.ResponseWriter, r *http.Request) {
			u := request.From(r.Context()).User
			got = u.Name + "|" + strings.Join(u.Groups, ",")
			for name := range r.Header {
				if strings.HasPrefix(name, "Impersonate-") {
					t.Errorf("%s: header %s is still there", c.name, name)
				}
			}
		}, as(&authx.Identity{Name: "actor"}), filters.Impersonate(allow, filters.Impersonation{}, quiet, fail))
		if w.Code != c.code || got != c.who {
			t.Errorf("%s: %d %q, want %d %q: %s", c.name, w.Code, got, c.code, c.who, w.Body)
		}
	}
}

func TestDeadline(t *testing.T) {
	wait := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(200)
		_, _ = io.WriteString(w, "too late")
	}
	limit := filters.Deadline(time.Hour, fail)
	w := serve(httptest.NewRequest("GET", "/version?timeout=1ms", nil), wait, limit)
	if w.Code != 504 || !strings.Contains(w.Body.String(), `"reason":"Timeout"`) || strings.Contains(w.Body.String(), "too late") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := serve(httptest.NewRequest("GET", "/version?timeout=5", nil), ok, limit); w.Code != 400 ||
		message(t, w) != `invalid timeout specified in the request URL - time: missing unit in duration "5"` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, url := range []string{"/version?timeout=-1s", "/version?timeout=0", "/api/v1/pods?watch=1&timeout=abc"} {
		if w := serve(httptest.NewRequest("GET", url, nil), ok, limit); w.Code != 200 {
			t.Errorf("%s: %d %s", url, w.Code, w.Body)
		}
	}
}

func TestInFlight(t *testing.T) {
	for _, plain := range []bool{false, true} {
		limits := filters.Limits{Read: 1}
		config := limits.Seats()
		config.Plain = plain
		f := filters.NewInFlight(limits, flow.New(cache.New(nil), config))
		refused := 0
		f.Refused = func(bool) { refused++ }
		second := func(id *authx.Identity, url string) *httptest.ResponseRecorder {
			var w *httptest.ResponseRecorder
			serve(httptest.NewRequest("GET", "/version", nil), func(http.ResponseWriter, *http.Request) {
				w = serve(httptest.NewRequest("GET", url, nil), ok, as(id), f.Filter)
			}, as(&authx.Identity{Name: "first", Groups: []string{"system:authenticated"}}), f.Filter)
			return w
		}
		x := &authx.Identity{Name: "x", Groups: []string{"system:authenticated"}}
		if w := second(x, "/version"); w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Body.String() != "Too many requests, please try again later.\n" {
			t.Errorf("plain %t: one too many: %d %v %s", plain, w.Code, w.Header(), w.Body)
		} else if classified := w.Header().Values("X-Kubernetes-PF-FlowSchema-UID") != nil; classified == plain {
			t.Errorf("plain %t: classified %t", plain, classified)
		}
		if w := second(&authx.Identity{Name: "x", Groups: []string{authx.GroupMasters}}, "/version"); w.Code != 200 {
			t.Errorf("plain %t: masters: %d", plain, w.Code)
		}
		// A watch needs a seat as it begins, where there are levels.
		want, refusals := 429, 2
		if plain {
			want, refusals = 200, 1
		}
		if w := second(x, "/api/v1/pods?watch=1"); w.Code != want || refused != refusals {
			t.Errorf("plain %t: a watch: %d, want %d; %d refusals counted", plain, w.Code, want, refused)
		}
	}
}

// A watch has a seat until it has begun, and the scope gives it back once.
func TestSeatOfWatch(t *testing.T) {
	limits := filters.Limits{Read: 1}
	flows := flow.New(cache.New(nil), limits.Seats())
	f := filters.NewInFlight(limits, flows)
	running := func() int { n, _, _ := flows.Seats.Usage(); return n }
	for _, begins := range []bool{true, false} {
		serve(httptest.NewRequest("GET", "/api/v1/pods?watch=1", nil), func(_ http.ResponseWriter, r *http.Request) {
			s := request.From(r.Context())
			if s.Seat == nil || running() != 1 {
				t.Fatalf("a watch begins with %d seats", running())
			}
			s.Seat.Sending()
			if err := s.Seat.Sent(); err != nil {
				t.Error(err)
			}
			if begins {
				s.Begun()
				s.Begun()
				if running() != 0 {
					t.Error("a watch that has begun has a seat")
				}
			}
		}, as(&authx.Identity{Name: "x", Groups: []string{"system:authenticated"}}), f.Filter)
		if running() != 0 {
			t.Errorf("begun %t: a watch that has ended has a seat", begins)
		}
	}
}

// TestSeatOfWaitingRequest: while a request waits for others, they may use its seat. Then it has one again.
func TestSeatOfWaitingRequest(t *testing.T) {
	for _, plain := range []bool{false, true} {
		limits := filters.Limits{Read: 1}
		config := limits.Seats()
		config.Plain = plain
		flows := flow.New(cache.New(nil), config)
		f := filters.NewInFlight(limits, flows)
		running := func() int { n, _, _ := flows.Seats.Usage(); return n }
		get := func(user string, handle http.HandlerFunc) int {
			return serve(httptest.NewRequest("GET", "/version", nil), handle, as(&authx.Identity{Name: user, Groups: []string{"system:authenticated"}}), f.Filter).Code
		}
		get("first", func(_ http.ResponseWriter, r *http.Request) {
			err := request.From(r.Context()).Waiting(func() error {
				time.Sleep(2 * seats.Unmoved)
				if code := get("second", ok); code != 200 {
					t.Errorf("plain %t: while the first request waits, the second gets %d", plain, code)
				}
				return nil
			})
			if n := running(); err != nil || n != 1 {
				t.Errorf("plain %t: %d seats are taken, %v", plain, n, err)
			}
			if code := get("third", ok); code != 429 {
				t.Errorf("plain %t: the third request gets %d", plain, code)
			}
		})
		if n := running(); n != 0 {
			t.Errorf("plain %t: %d seats are still taken", plain, n)
		}
	}
}

func TestRecover(t *testing.T) {
	panics := 0
	guard := filters.Recover(quiet, func() { panics++ })
	w := serve(httptest.NewRequest("GET", "/version", nil), func(http.ResponseWriter, *http.Request) { panic("oh") }, guard)
	if w.Code != 500 || panics != 1 {
		t.Errorf("%d, %d panics", w.Code, panics)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("a half answer ended with %v", v)
		}
	}()
	serve(httptest.NewRequest("GET", "/version", nil), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("oh")
	}, guard)
}
