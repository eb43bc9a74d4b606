package documents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cache of APIServices, Documents on it, and the servers that they ask.
type world struct {
	*documents.Documents
	t     *testing.T
	cache *cache.Cache
	last  int64
	live  map[string]sqlstore.Row

	mu      sync.Mutex
	servers map[string]http.HandlerFunc // by the name of the service
	asked   []string                    // "service path as user"
	under   map[string]int              // requests of a server that are under way
	most    int                         // of one server at once
	proxied []string
	logged  strings.Builder
}

// newWorld runs Documents until the test ends.
func newWorld(t *testing.T) *world {
	w := &world{
		t: t, cache: cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{}), live: map[string]sqlstore.Row{},
		servers: map[string]http.HandlerFunc{}, under: map[string]int{},
	}
	agg := aggregator.New(aggregator.Config{Cache: w.cache})
	w.Documents = documents.New(documents.Config{
		Cache: w.cache, Services: agg.Services, Backend: w, Agent: "test", Log: slog.New(slog.NewTextHandler(w, nil)), Interval: 20 * time.Millisecond,
		Proxy: func(_ http.ResponseWriter, r *http.Request, s *apiregistrationv1.APIService) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.proxied = append(w.proxied, s.Name+" "+r.URL.Path)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

// Write takes lines of the log.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.Write(line)
}

// RoundTrip asks the server that a service's name stands for.
func (w *world) RoundTrip(ctx context.Context, s *apiregistrationv1.APIService, who *authx.Identity, r *http.Request) (*http.Response, error) {
	name := s.Spec.Service.Name
	w.mu.Lock()
	serve := w.servers[name]
	w.asked = append(w.asked, fmt.Sprintf("%s %s as %s %s", name, r.URL.Path, who.Name, strings.Join(who.Groups, ",")))
	w.under[name]++
	w.most = max(w.most, w.under[name])
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.under[name]--
	}()
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	rec := httptest.NewRecorder()
	serve(rec, r.WithContext(ctx))
	return rec.Result(), ctx.Err()
}

func (w *world) serve(name string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[name] = h
}

// leave writes the APIService that leaves a group version to a service.
func (w *world) leave(group, version, service string) {
	w.t.Helper()
	name := version + "." + group
	w.last++
	s := &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(w.last)},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: group, Version: version, GroupPriorityMinimum: 100, VersionPriority: 10,
			Service: &apiregistrationv1.ServiceReference{Namespace: "there", Name: service},
		},
	}
	value, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, sqlstore.Row{Value: value})
}

func (w *world) drop(group, version string) {
	w.last++
	name := version + "." + group
	w.write(name, sqlstore.Row{Value: w.live[name].Value, Deleted: true})
}

func (w *world) write(name string, row sqlstore.Row) {
	row.Key, row.Revision = sqlstore.Key{Resource: aggregator.Storage, Name: name}, w.last
	change := sqlstore.Change{Row: row}
	if old, ok := w.live[name]; ok {
		change.PrevRevision, change.PrevValue = old.Revision, old.Value
	}
	if w.live[name] = row; row.Deleted {
		delete(w.live, name)
	}
	w.cache.Apply([]sqlstore.Change{change})
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("%s: waited in vain; asked were %v", what, w.asked[:min(len(w.asked), 40)])
		}
	}
}

// describe describes a group version: "unknown", or its freshness and resources.
func (w *world) describe(gv string) string {
	list, _ := w.Services()
	for _, s := range list {
		if s.Group+"/"+s.Version != gv {
			continue
		}
		if s.Discovery == nil {
			return "unknown"
		}
		out := string(s.Discovery.Freshness)
		for _, r := range s.Discovery.Resources {
			out += " " + r.Resource
			for _, sub := range r.Subresources {
				out += " " + r.Resource + "/" + sub.Subresource
			}
		}
		return out
	}
	return "none"
}

func (w *world) untilIs(gv, want string) {
	w.t.Helper()
	w.until(gv+" says "+want, func() bool { return w.describe(gv) == want })
}

func (w *world) count(prefix string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.asked {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

const resourceList = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"x/v1","resources":[
	{"name":"gadgets","singularName":"gadget","namespaced":false,"kind":"Gadget","verbs":["get","list"]},
	{"name":"widgets/status","namespaced":true,"kind":"Widget","verbs":["get"]},
	{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get"],"shortNames":["wd"]},
	{"name":"orphans/part","namespaced":true,"kind":"Part","group":"other","version":"v3","verbs":["create"]}]}`

// old is a server that has a list for each version alone.
func old(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/apis":
		http.Error(rw, "only lists", http.StatusNotAcceptable)
	case strings.HasPrefix(r.URL.Path, "/apis/broken."):
		http.Error(rw, "broken", http.StatusInternalServerError)
	case strings.HasPrefix(r.URL.Path, "/apis/garbage."):
		fmt.Fprint(rw, "{not json")
	case strings.HasPrefix(r.URL.Path, "/apis/other."):
		fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1"}`)
	case strings.HasPrefix(r.URL.Path, "/apis/"):
		fmt.Fprint(rw, resourceList)
	default:
		http.NotFound(rw, r)
	}
}

// A server that has no aggregated document is asked version by version, and what one of
// them cannot tell is not held against the others.
func TestLists(t *testing.T) {
	w := newWorld(t)
	w.serve("one", old)
	for _, group := range []string{"good.example", "broken.example", "garbage.example", "other.example"} {
		w.leave(group, "v1", "one")
	}
	w.untilIs("good.example/v1", "Current gadgets widgets widgets/status orphans orphans/part")
	for _, group := range []string{"broken.example", "garbage.example", "other.example"} {
		w.untilIs(group+"/v1", "Stale")
	}
	for kind, want := range map[string]string{
		"Widget.v1.good.example": "widgets namespaced true", "Gadget.v1.good.example": "gadgets namespaced false",
		"Part.v1.good.example": "", "Widget.v2.good.example": "", "Widget.v1.broken.example": "", "Widget.v1.none.example": "", "Deployment.v1.apps": "",
	} {
		gvk, _ := schema.ParseKindArg(kind)
		got := ""
		if what, namespaced, ok := w.OfKind(*gvk); ok {
			got = fmt.Sprint(what.Resource, " namespaced ", namespaced)
			if what.GroupVersion() != gvk.GroupVersion() {
				t.Errorf("%s: found in %v", kind, what)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	list, _ := w.Services()
	for _, s := range list {
		if s.Group != "good.example" {
			continue
		}
		want := []discoveryv2.APIResourceDiscovery{
			{Resource: "gadgets", SingularResource: "gadget", Scope: "Cluster", ResponseKind: &metav1.GroupVersionKind{Kind: "Gadget"}, Verbs: []string{"get", "list"}},
			{Resource: "widgets", SingularResource: "widget", Scope: "Namespaced", ResponseKind: &metav1.GroupVersionKind{Kind: "Widget"}, Verbs: []string{"get"}, ShortNames: []string{"wd"},
				Subresources: []discoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Kind: "Widget"}, Verbs: []string{"get"}}}},
			{Resource: "orphans", Scope: "Namespaced", ResponseKind: &metav1.GroupVersionKind{},
				Subresources: []discoveryv2.APISubresourceDiscovery{{Subresource: "part", ResponseKind: &metav1.GroupVersionKind{Group: "other", Version: "v3", Kind: "Part"}, Verbs: []string{"create"}}}},
		}
		if d := cmp.Diff(want, s.Discovery.Resources); d != "" {
			t.Error(d)
		}
	}
	if n := w.count("one /apis/good.example/v1 as system:kube-aggregator system:masters"); n == 0 {
		t.Error("it was asked as another user")
	}
}

// modern answers with one document of all groups, or with 304 to a client that has it.
func modern(document string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("ETag", `"tag"`)
		if r.Header.Get("If-None-Match") == `"tag"` {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		rw.Header().Set("Content-Type", accept)
		fmt.Fprint(rw, document)
	}
}

func aggregated(groups ...string) string {
	var items []string
	for _, g := range groups {
		items = append(items, `{"metadata":{"name":"`+g+`"},"versions":[{"version":"v1","freshness":"Stale","resources":[{"resource":"things","scope":"Namespaced","verbs":["get"],"subresources":[{"subresource":"status","verbs":["get"]}]}]}]}`)
	}
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

// One document describes all versions that APIServices delegate to a server. One that is not in it is empty and
// current; groups that no APIService delegates belong to no server.
func TestAggregated(t *testing.T) {
	w := newWorld(t)
	w.serve("one", modern(aggregated("a.example", "b.example", "apps")))
	w.leave("a.example", "v1", "one")
	w.leave("b.example", "v1", "one")
	w.leave("missing.example", "v1", "one")
	w.untilIs("a.example/v1", "Current things things/status")
	w.untilIs("b.example/v1", "Current things things/status")
	w.untilIs("missing.example/v1", "Current")
	if got := w.describe("apps/v1"); got != "none" {
		t.Errorf("apps: %s", got)
	}
	// It is asked again and again, and its answer is not sent twice.
	before := w.count("one /apis as")
	w.until("asked again", func() bool { return w.count("one /apis as") > before+2 })
	w.untilIs("a.example/v1", "Current things things/status")
	if _, number := w.Services(); number > 6 {
		t.Errorf("the listing changed %d times, although the answer was the same", number)
	}
	if n := w.count("one /apis/"); n > 0 {
		t.Errorf("%d lists were asked for", n)
	}
	// The same document is as good for an APIService that comes later.
	w.leave("late.example", "v1", "one")
	w.untilIs("late.example/v1", "Current")
}

// The group of a server that cannot be reached is stale, and no other; it is current when the server is back,
// and gone with its APIService.
func TestAway(t *testing.T) {
	w := newWorld(t)
	w.serve("good", modern(aggregated("good.example")))
	w.leave("good.example", "v1", "good")
	w.leave("away.example", "v1", "nobody")
	w.untilIs("away.example/v1", "Stale")
	w.untilIs("good.example/v1", "Current things things/status")

	w.serve("nobody", modern(aggregated("away.example")))
	w.leave("away.example", "v1", "nobody") // as its Available condition would change
	w.untilIs("away.example/v1", "Current things things/status")

	w.serve("nobody", func(http.ResponseWriter, *http.Request) { panic(&cache.Unreadable{}) }) // as of its Service
	w.untilIs("away.example/v1", "Stale")
	w.untilIs("good.example/v1", "Current things things/status")
	w.drop("away.example", "v1")
	w.untilIs("away.example/v1", "none")
}

// TestTroubleIsLoggedOnce: a server that fails in another way each time causes one line until it works again.
func TestTroubleIsLoggedOnce(t *testing.T) {
	w := newWorld(t)
	failures := 0
	w.serve("one", func(rw http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		failures++
		http.Error(rw, "broken", 500+failures)
	})
	for n := 0; n < 5; {
		before := w.count("one ")
		w.leave("a.example", "v1", "one") // as its Available condition would change
		w.until("another request", func() bool { return w.count("one ") > before })
		w.mu.Lock()
		n = failures
		w.mu.Unlock()
	}
	w.serve("one", modern(aggregated("a.example")))
	w.leave("a.example", "v1", "one")
	w.untilIs("a.example/v1", "Current things things/status")
	w.until("the end of the trouble", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Contains(w.logged.String(), "serves its resource list again")
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := strings.Count(w.logged.String(), "cannot read the resource list"); n != 1 {
		t.Errorf("%d lines:\n%s", n, w.logged.String())
	}
}

// Servers that stall, more of them than are asked at once, do not delay others, and each gets one
// request at a time.
func TestStalls(t *testing.T) {
	w := newWorld(t)
	stall := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for i := range 40 {
		name := fmt.Sprintf("stalls%d", i)
		w.serve(name, stall)
		w.leave(name+".example", "v1", name)
	}
	w.serve("good", old)
	w.leave("good.example", "v1", "good")
	w.untilIs("good.example/v1", "Current gadgets widgets widgets/status orphans orphans/part")
	w.mu.Lock()
	defer w.mu.Unlock()
	at := 0
	for _, n := range w.under {
		at += n
	}
	if w.most > 1 || at > 32 {
		t.Errorf("%d requests to one server at once, %d in all", w.most, at)
	}
}

// What is too large, too deep or too much is not taken.
func TestBounds(t *testing.T) {
	many := strings.Repeat(`{"resource":"r","scope":"Cluster","verbs":[]},`, 10_001)
	for name, body := range map[string]string{
		"bytes":     `{"kind":"APIGroupDiscoveryList","x":"` + strings.Repeat("x", 4<<20) + `"}`,
		"depth":     `{"kind":"APIGroupDiscoveryList","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		"weight":    `{"kind":"APIGroupDiscoveryList","items":[{}` + strings.Repeat(",{}", 1<<20) + `]}`,
		"resources": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a.example"},"versions":[{"version":"v1","resources":[` + strings.TrimSuffix(many, ",") + `]}]}]}`,
		"a null":    `null`,
		"nothing":   ``,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve("one", modern(body))
			w.leave("a.example", "v1", "one")
			w.untilIs("a.example/v1", "Stale")
		})
	}
}
