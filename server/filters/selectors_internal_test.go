package filters

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/request"
)

// large is the number of commas that take a little less than 4 MiB.
const large = 4<<20/(1+termWeight) - 50

// asking returns a watch of a user with so many commas.
func asking(t *testing.T, user string, size int, groups ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("GET", "/api/v1/pods?watch=1&x="+strings.Repeat(",", size), nil)
	info, err := request.Parse(r.Method, r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return r.WithContext(request.With(r.Context(), &request.Scope{Info: info, User: &authx.Identity{Name: user, Groups: groups}}))
}

// TestSelectorsAreBounded: a user keeps so much, all keep so much, and what ends
// makes room.
func TestSelectorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		l := NewSelectors(func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		})
		l.Refused = func(bool) { refused++ }
		end := make(chan struct{})
		h := l.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		ask := func(user string, size int, groups ...string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := asking(t, user, size, groups...)
			go h.ServeHTTP(w, r)
			synctest.Wait()
			return w
		}
		for u := range 5 {
			for i := range 17 {
				got, want := ask(fmt.Sprint("u", u), large).Code, 200
				if i == 16 || u == 4 {
					want = 429
				}
				if got != want {
					t.Errorf("user %d, %d: %d, want %d", u, i, got, want)
				}
			}
		}
		if code := ask("u0", 400).Code; code != 200 {
			t.Errorf("a short one: %d", code)
		}
		if code := ask("master", large, authx.GroupMasters).Code; code != 200 {
			t.Errorf("an administrator's: %d", code)
		}
		if refused != 4+17 {
			t.Errorf("%d refusals were counted", refused)
		}
		close(end)
		synctest.Wait()
		if l.held != 0 || len(l.users) != 0 {
			t.Errorf("%d bytes of %d users are held after the end", l.held, len(l.users))
		}
		if code := ask("u0", large).Code; code != 200 {
			t.Errorf("after the end: %d", code)
		}
	})
}

// TestSelectorsInTurn: long selectors are parsed one after the other, in turns of their users, and a request that ends
// before has nothing parsed.
func TestSelectorsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewSelectors(func(http.ResponseWriter, *http.Request, error) {})
		busy, err := l.parse.Enter(t.Context(), "somebody", 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		through := map[string]int{}
		h := l.Filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			through[request.From(r.Context()).User.Name]++
		}))
		ctx, cancel := context.WithCancel(t.Context())
		for _, user := range []string{"greedy", "greedy", "gone", "greedy", "modest"} {
			r := asking(t, user, longSelector)
			if user == "gone" {
				r = r.WithContext(request.With(ctx, request.From(r.Context())))
			}
			go h.ServeHTTP(httptest.NewRecorder(), r)
			synctest.Wait()
		}
		go h.ServeHTTP(httptest.NewRecorder(), asking(t, "short", 10))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(through) != 1 || through["short"] != 1 {
			t.Errorf("while selectors are parsed these go on: %v", through)
		}
		busy.Leave()
		synctest.Wait()
		if len(through) != 3 || through["greedy"] != 3 || through["modest"] != 1 {
			t.Errorf("afterwards these went on: %v", through)
		}
	})
}

// TestShortSelectorsCount: the memory of watches' selectors counts towards a user's limit, even if each is
// short, and terms count more than their text.
func TestShortSelectorsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewSelectors(func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusTooManyRequests) })
		end := make(chan struct{})
		h := l.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		watch := func(terms int) int {
			query := "watch=1&labelSelector=" + strings.Repeat("a%2Cb,", terms/2)
			r := httptest.NewRequest("GET", "/api/v1/pods?"+query, nil)
			info, err := request.Parse(r.Method, r.URL)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			go h.ServeHTTP(w, r.WithContext(request.With(r.Context(), &request.Scope{Info: info, User: &authx.Identity{Name: "u"}})))
			synctest.Wait()
			return w.Code
		}
		for range 5000 { // as many as a user may have, with selectors as controllers have them
			if code := watch(60); code != 200 {
				t.Fatalf("a watch of a few terms: %d", code)
			}
		}
		if l.held != 0 {
			t.Errorf("%d bytes are held for selectors of a few terms", l.held)
		}
		many := 0
		for ; watch(5000) == 200; many++ {
			if many > maxOfUser/(5000*termWeight) {
				t.Fatalf("%d watches of 15 KB are open", many)
			}
		}
		if many < 100 {
			t.Errorf("only %d watches of 15 KB are open", many)
		}
		close(end)
		synctest.Wait()
	})
}

// TestLongRequestsThatLastCount: the whole URL and the headers of a request that lasts count, whatever its verb is.
func TestLongRequestsThatLastCount(t *testing.T) {
	const long = 1 << 20
	text := strings.Repeat("a", long)
	for name, tc := range map[string]struct {
		path    string
		headers http.Header
	}{
		"the path of a watch":    {"/api/v1/namespaces/" + text + "/pods?watch=1", nil},
		"the headers of a watch": {"/api/v1/pods?watch=1", http.Header{"X-A": {text}}},
		"the path of a proxy":    {"/api/v1/namespaces/a/pods/p/proxy/" + text, nil},
		"the headers of exec":    {"/api/v1/namespaces/a/pods/p/exec?command=a", http.Header{"X-A": {text[:long/2], text[:long/2]}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := NewSelectors(func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusTooManyRequests) })
			end := make(chan struct{})
			h := l.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
			served := 0
			for range 2 * maxOfUser / long {
				r := httptest.NewRequest("GET", tc.path, nil)
				r.Header = tc.headers
				info, err := request.Parse(r.Method, r.URL)
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				go h.ServeHTTP(w, r.WithContext(request.With(r.Context(), &request.Scope{Info: info, User: &authx.Identity{Name: "u"}})))
				if synctest.Wait(); w.Code == http.StatusOK {
					served++
				}
			}
			if want := maxOfUser/long - 1; served != want {
				t.Errorf("%s: %d requests of %d bytes at once, want %d", name, served, long, want)
			}
			close(end)
			synctest.Wait()
			if l.held != 0 || len(l.users) != 0 {
				t.Errorf("%s: %d bytes of %d users are held after the end", name, l.held, len(l.users))
			}
		})
	}
}

// TestLongRequestsAreParsedInTurn: connections with long requests take turns, and a request whose client has gone does not wait.
func TestLongRequestsAreParsedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading := fair.NewGate(fair.Limits{Places: 1})
		busy, err := reading.Enter(t.Context(), "somebody", 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		parsed := func(ctx context.Context, from, target string) {
			r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
			r.RemoteAddr = from
			go func() {
				_, err := parse(r, reading)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprint(from, " ", err))
			}()
			synctest.Wait()
		}
		query, path := "/api?"+strings.Repeat("a", longSelector), "/api/"+strings.Repeat("a", longSelector)
		ctx, cancel := context.WithCancel(t.Context())
		parsed(t.Context(), "greedy", query)
		parsed(t.Context(), "greedy", query)
		parsed(ctx, "gone", query)
		parsed(t.Context(), "modest", path)
		parsed(t.Context(), "short", "/api")
		cancel()
		synctest.Wait()
		if want := []string{"short <nil>", "gone context canceled"}; !slices.Equal(order, want) {
			t.Errorf("while another is parsed: %q, want %q", order, want)
		}
		order = nil
		release := make(chan struct{})
		go func() {
			if last, err := reading.Enter(t.Context(), "last", 0); err == nil {
				<-release
				last.Leave()
			}
		}()
		synctest.Wait()
		busy.Leave()
		synctest.Wait()
		if slices.Sort(order); !slices.Equal(order, []string{"greedy <nil>", "modest <nil>"}) {
			t.Errorf("before the last one: %q, want one of each", order)
		}
		close(release)
		synctest.Wait()
		if len(order) != 3 {
			t.Errorf("after the last one: %q, want both of the greedy ones", order)
		}
	})
}
