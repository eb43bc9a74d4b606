package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/e2e/harness"
)

// asUser returns headers that impersonate a user without the rights of an administrator.
func asUser(name string) []string {
	return []string{"authorization", "Bearer " + harness.AdminToken, "impersonate-user", name, "impersonate-group", "system:authenticated"}
}

// allow gives users the rights of editors.
func allow(t *testing.T, s *harness.Server, users ...string) {
	t.Helper()
	var subjects []string
	for _, u := range users {
		subjects = append(subjects, fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, u))
	}
	body := `{"metadata":{"name":"limits"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[` + strings.Join(subjects, ",") + `]}`
	if a := asAdmin(t, s, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body); a.code != 201 {
		t.Fatal(a)
	}
}

// TestUnreadWatches: their queues do not grow with the writes, and they do not delay writers.
func TestUnreadWatches(t *testing.T) {
	t.Parallel()
	const configMaps = "/api/v1/namespaces/default/configmaps"
	s := harness.StartT(t, harness.Options{})
	allow(t, s, "mallory")
	body := func(name string, i int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"i":"%d","a":%q}}`, name, i, strings.Repeat("x", 120<<10))
	}
	for i := range 50 {
		if a := asAdmin(t, s, "POST", configMaps, body(fmt.Sprint("c", i), 0)); a.code != 201 {
			t.Fatal(a)
		}
	}
	paths := []string{
		configMaps + "?watch=1", configMaps + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		configMaps + "?watch=1&resourceVersion=1", "/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Dc1",
	}
	memory := s.Resident(t)
	const watches = 1000
	for i := range watches / 100 {
		window := uint32([]int{0, 4 << 20}[i%2])
		r := s.DialFrames(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
		if window > 0 { // taken, until the socket is full
			if err := r.WriteWindowUpdate(0, 1<<30); err != nil {
				t.Fatal(err)
			}
		}
		for k := range 100 {
			if err := r.Request(true, "GET", paths[k%len(paths)], asUser("mallory")...); err != nil {
				t.Fatal(err)
			}
		}
	}
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	const writes = 2000 // a quarter of a gigabyte
	var took []time.Duration
	for i := range writes {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", fmt.Sprintf("%s%s/c%d", s.URL, configMaps, i%50), strings.NewReader(body(fmt.Sprint("c", i%50), i+1)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		r.Header.Set("Content-Type", "application/json")
		from := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		took = append(took, time.Since(from))
		if resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
	}
	slices.Sort(took)
	grown := s.Resident(t) - memory
	t.Logf("%d watches: %d MB more; writes: half within %v, 99 %% within %v, the slowest %v", watches, grown>>20, took[writes/2], took[writes*99/100], took[writes-1])
	if grown > 300<<20 {
		t.Errorf("%d watches that nobody reads took %d MB", watches, grown>>20)
	}
}

// TestWatchesOfOneUser: there may be so many watches of a user, and of all.
func TestWatchesOfOneUser(t *testing.T) {
	t.Parallel()
	const watch = "/api/v1/namespaces/default/configmaps?watch=1"
	s := harness.StartT(t, harness.Options{Args: []string{"--max-watches-per-user=5", "--max-watches=8"}})
	allow(t, s, "ann", "bob", "cid")
	client := s.ClientOf(t, true)
	begin := func(user string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+watch, nil)
		if err != nil {
			t.Fatal(err)
		}
		for h := asUser(user); len(h) > 0; h = h[2:] {
			r.Header.Set(h[0], h[1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	for i, c := range []struct {
		user string
		code int
	}{{"ann", 200}, {"ann", 200}, {"ann", 200}, {"ann", 200}, {"ann", 200}, {"ann", 429}, {"bob", 200}, {"bob", 200}, {"bob", 200}, {"cid", 429}} {
		resp := begin(c.user)
		if resp.StatusCode != c.code || (resp.Header.Get("Retry-After") != "") != (c.code == 429) {
			t.Errorf("watch %d, of %s: %d, retry after %q", i, c.user, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
	if a := asAdmin(t, s, "GET", "/metrics", ""); !strings.Contains(a.body, `rowlock_requests_limited_total{limit="watches"} 2`) {
		t.Error("the refusals are not counted")
	}
}
