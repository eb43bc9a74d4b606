package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// fake is an API server whose answers a test sets.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // URLs
	agents []string
	handle map[string]http.HandlerFunc // by path
	waited []time.Duration
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{handle: map[string]http.HandlerFunc{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	f.serve("/api", text(`{"kind":"APIVersions","versions":["v1"]}`))
	f.serve("/apis", text(`{"kind":"APIGroupList","groups":[]}`))
	f.serve("/api/v1", text(`{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`))
	return f
}

func (f *fake) serve(path string, h http.HandlerFunc) { f.handle[path] = h }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.String())
	f.agents = append(f.agents, r.UserAgent())
	f.mu.Unlock()
	if h := f.handle[r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	http.NotFound(w, r)
}

// times returns how often a path was asked for.
func (f *fake) times(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.asked {
		if p, _, _ := strings.Cut(u, "?"); p == path {
			n++
		}
	}
	return n
}

// client returns one that does not wait, but notes how long it would have.
func (f *fake) client(t *testing.T, change func(*remote.Config)) *remote.Client {
	t.Helper()
	cfg := remote.Config{URL: f.URL, HTTP: f.Server.Client(), QPS: 1e6, Burst: 1e6, Agent: "rowlock-test"}
	cfg.Sleep = func(ctx context.Context, d time.Duration) error {
		f.mu.Lock()
		f.waited = append(f.waited, d)
		f.mu.Unlock()
		return ctx.Err()
	}
	if change != nil {
		change(&cfg)
	}
	c, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// refuse answers a Status.
func refuse(code int, message string, seconds int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if seconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(seconds))
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message, "code": code})
	}
}

// inTurn answers with one handler after the other, and with the last from then on.
func inTurn(list ...http.HandlerFunc) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		h := list[min(n, len(list)-1)]
		n++
		h(w, r)
	}
}

func configMaps(version, next string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"a","uid":"u-%s","resourceVersion":"7"},"data":{"k":"%s"}}`, name, name, name))
	}
	return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, next, strings.Join(items, ","))
}

// collect returns what a client collects, as "resource namespace/name", with the JSON.
func collect(t *testing.T, c *remote.Client, o remote.Options) (map[string]string, *remote.Collected, error) {
	t.Helper()
	o.Dir = t.TempDir()
	got, err := c.Collect(t.Context(), o)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() {
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	})
	all := map[string]string{}
	for _, s := range got.Sections() {
		for obj, err := range got.Objects(s) {
			if err != nil {
				t.Fatal(err)
			}
			all[s.Resource.String()+" "+obj.Namespace+"/"+obj.Name] = string(obj.JSON)
		}
	}
	return all, got, nil
}
