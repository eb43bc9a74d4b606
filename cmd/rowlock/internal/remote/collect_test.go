package remote_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// TestRetryAfter: after a Retry-After all workers wait, and then retry; a longer one than the client
// accepts ends the run.
func TestRetryAfter(t *testing.T) {
	f := newFake(t)
	f.serve(maps, inTurn(refuse(http.StatusTooManyRequests, "busy", 7), refuse(http.StatusServiceUnavailable, "starting", 0), text(configMaps("9", "", "x"))))
	all, _, err := collect(t, f.client(t, nil), remote.Options{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	long := 0
	for _, d := range f.waited {
		if d > 6*time.Second && d <= 7*time.Second {
			long++
		}
	}
	if long == 0 || f.times(maps) != 3 {
		t.Errorf("waited %v, asked %d times", f.waited, f.times(maps))
	}

	f.serve(maps, refuse(http.StatusTooManyRequests, "busy", 86400))
	if _, _, err := collect(t, f.client(t, nil), remote.Options{}); err == nil || !strings.Contains(err.Error(), "asks to wait 24h0m0s") {
		t.Errorf("a day of waiting: %v", err)
	}
	before := f.times(maps)
	f.serve(maps, refuse(http.StatusTooManyRequests, "busy", 0))
	if _, _, err := collect(t, f.client(t, nil), remote.Options{}); err == nil || !strings.Contains(err.Error(), "tried 10 times") || f.times(maps) != before+10 {
		t.Errorf("a server that is always busy: %v after %d requests", err, f.times(maps)-before)
	}
}

// TestRateLimit: requests go out no faster than asked for.
func TestRateLimit(t *testing.T) {
	f := newFake(t)
	f.serve(maps, inTurn(text(configMaps("9", "1", "a")), text(configMaps("9", "2", "b")), text(configMaps("9", "", "c"))))
	begun := time.Now()
	if _, _, err := collect(t, f.client(t, func(c *remote.Config) { c.QPS, c.Burst = 20, 1 }), remote.Options{}); err != nil {
		t.Fatal(err)
	}
	// 6 requests: 3 of discovery, 3 pages. The first is free.
	if took := time.Since(begun); took < 240*time.Millisecond {
		t.Errorf("6 requests at 20 a second took %s", took)
	}
	for _, agent := range f.agents {
		if agent != "rowlock-test" {
			t.Errorf("User-Agent is %q", agent)
		}
	}
}

// TestCount: the number of objects is requested beforehand, by a list of one of each resource; where a server
// does not return it for all, the known part is a lower bound.
func TestCount(t *testing.T) {
	const secrets = "/api/v1/secrets"
	one := func(kind, rest string) string {
		return fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"9"%s},"items":[{"metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"7"}}]}`, kind, rest)
	}
	for name, tc := range map[string]struct {
		counts  http.HandlerFunc // of secrets
		total   int64
		atLeast bool
	}{
		"all there are":          {text(one("Secret", "")), 42, false},
		"with a rest":            {text(one("Secret", `,"continue":"t","remainingItemCount":99`)), 141, false},
		"a rest that is unknown": {text(one("Secret", `,"continue":"t"`)), 42, true},
		"a rest that is absurd":  {text(one("Secret", `,"continue":"t","remainingItemCount":-3`)), 42, true},
		"a refusal":              {refuse(http.StatusForbidden, "no", 0), 41, true},
		"an error":               {refuse(http.StatusBadRequest, "no", 0), 41, true},
	} {
		f := newFake(t)
		f.serve("/api/v1", text(`{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]},{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list"]}]}`))
		limited := func(count, all http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("limit") == "1" {
					count(w, r)
					return
				}
				all(w, r)
			}
		}
		f.serve(maps, limited(text(one("ConfigMap", `,"continue":"t","remainingItemCount":40`)), text(configMaps("9", "", "x", "y"))))
		f.serve(secrets, limited(tc.counts, text(one("Secret", ""))))
		var shown []remote.Progress
		_, got, err := collect(t, f.client(t, nil), remote.Options{Count: true, Progress: func(p remote.Progress) { shown = append(shown, p) }})
		if err != nil {
			t.Fatal(name, err)
		}
		if len(shown) != 3 || len(got.Sections()) != 2 {
			t.Fatalf("%s: %+v", name, shown)
		}
		for i, p := range shown {
			if p.Objects != int64(i+1) || p.Total != tc.total || p.AtLeast != tc.atLeast || p.Of != 2 || p.Place != (i+2)/2 || p.Resource.Name != []string{"configmaps", "configmaps", "secrets"}[i] {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if f.times(maps) != 2 || f.times(secrets) != 2 {
			t.Errorf("%s: %v", name, f.asked)
		}
	}
}

// TestExpired: a list that expires in its middle, or goes on at another version, or breaks
// off, is begun again, and nothing of the first beginning is left; five times and no more.
func TestExpired(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		fmt.Fprint(w, configMaps("8", "", "lost")[:60])
	}
	for name, second := range map[string]http.HandlerFunc{
		"410":             refuse(http.StatusGone, "expired", 0),
		"another version": text(configMaps("8", "", "newer")),
		"broken off":      cut,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			first := text(configMaps("7", "t", "old"))
			f.serve(maps, inTurn(first, second, text(configMaps("11", "u", "x")), text(configMaps("11", "", "y"))))
			all, got, err := collect(t, f.client(t, nil), remote.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 2 || all["configmaps a/x"] == "" || all["configmaps a/y"] == "" {
				t.Errorf("collected %v", all)
			}
			if s := got.Sections()[0]; s.Listed != (remote.Listed{Version: "11", Objects: 2, Begun: 2}) || got.Newest != 11 {
				t.Errorf("%+v, newest %d", s.Listed, got.Newest)
			}
			f.serve(maps, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("continue") == "" {
					first(w, r)
					return
				}
				second(w, r)
			})
			if _, _, err := collect(t, f.client(t, nil), remote.Options{}); err == nil || !strings.Contains(err.Error(), "begun 5 times") {
				t.Errorf("always: %v", err)
			}
		})
	}
}

// TestWhatIsCollected: every resource once, completed with kind and version; definitions
// and their storage versions; virtual, aggregated and forbidden resources are left out.
func TestWhatIsCollected(t *testing.T) {
	f := newFake(t)
	aggregated := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
				t.Errorf("Accept is %q", r.Header.Get("Accept"))
			}
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprint(w, body)
		}
	}
	resource := func(name, kind, scope, verbs string) string {
		return fmt.Sprintf(`{"resource":%q,"responseKind":{"kind":%q},"scope":%q,"verbs":[%s]}`, name, kind, scope, verbs)
	}
	group := func(name string, versions ...string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, name, strings.Join(versions, ","))
	}
	version := func(name, more string, resources ...string) string {
		return fmt.Sprintf(`{"version":%q%s,"resources":[%s]}`, name, more, strings.Join(resources, ","))
	}
	f.serve("/api", aggregated(`{"items":[`+group("", version("v1", "",
		resource("configmaps", "ConfigMap", "Namespaced", `"list"`), resource("events", "Event", "Namespaced", `"list"`),
		resource("componentstatuses", "ComponentStatus", "Cluster", `"get","list"`), resource("bindings", "Binding", "Namespaced", `"create"`)))+`]}`))
	f.serve("/apis", aggregated(`{"items":[`+strings.Join([]string{
		group("events.k8s.io", version("v1", "", resource("events", "Event", "Namespaced", `"list"`))),
		group("apiextensions.k8s.io", version("v1", "", resource("customresourcedefinitions", "CustomResourceDefinition", "Cluster", `"list"`))),
		group("apiregistration.k8s.io", version("v1", "", resource("apiservices", "APIService", "Cluster", `"list"`))),
		group("metrics.k8s.io", version("v1beta1", `,"freshness":"Stale"`)),
		group("own.metrics.io", version("v1", "", resource("numbers", "Number", "Cluster", `"list"`))),
		group("example.com", version("v2", "", resource("widgets", "Widget", "Cluster", `"list"`)), version("v1", "", resource("widgets", "Widget", "Cluster", `"list"`))),
	}, ",")+`]}`))
	f.serve(maps, text(configMaps("12", "", "x")))
	f.serve("/api/v1/events", text(`{"metadata":{"resourceVersion":"13"},"items":null}`))
	f.serve("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text(`{"metadata":{"resourceVersion":"14"},"items":[{"metadata":{"name":"widgets.example.com","resourceVersion":"3"},"spec":{"group":"example.com","names":{"plural":"widgets"},"versions":[{"name":"v2","served":true},{"name":"v1","served":true,"storage":true}]}}]}`))
	service := func(name, group, version, to string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"4"},"spec":{"group":%q,"version":%q,"service":%s}}`, name, group, version, to)
	}
	f.serve("/apis/apiregistration.k8s.io/v1/apiservices", text(`{"metadata":{"resourceVersion":"15"},"items":[`+service("v1.", "", "v1", "null")+","+
		service("v1beta1.metrics.k8s.io", "metrics.k8s.io", "v1beta1", `{"name":"m"}`)+","+service("v1.own.metrics.io", "own.metrics.io", "v1", `{"name":"o"}`)+`]}`))
	f.serve("/apis/example.com/v1/widgets", text(`{"items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"5"}}],"kind":"WidgetList","metadata":{"resourceVersion":"4000"}}`))

	all, got, err := collect(t, f.client(t, nil), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"a","uid":"u-x","resourceVersion":"7"},"data":{"k":"x"}}`; all["configmaps a/x"] != want {
		t.Errorf("the ConfigMap is %s", all["configmaps a/x"])
	}
	if len(all) != 6 || all["widgets.example.com /w"] == "" || all["apiservices.apiregistration.k8s.io /v1."] == "" || got.Newest != 4000 {
		t.Errorf("collected %v, newest %d", all, got.Newest)
	}
	var left []string
	for _, l := range got.Skipped {
		left = append(left, l.Resource)
	}
	slices.Sort(left)
	if want := []string{"componentstatuses", "events.events.k8s.io", "numbers.own.metrics.io"}; !slices.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}

	f.serve(maps, refuse(http.StatusForbidden, "no", 0))
	if _, _, err := collect(t, f.client(t, nil), remote.Options{}); err == nil || !strings.Contains(err.Error(), "may not list configmaps (--skip-forbidden") {
		t.Errorf("forbidden: %v", err)
	}
	all, got, err = collect(t, f.client(t, nil), remote.Options{SkipForbidden: true})
	if err != nil || len(all) != 5 || !slices.Contains(got.Skipped, remote.Skipped{Resource: "configmaps", Reason: "forbidden to this user"}) {
		t.Errorf("with what is forbidden left out: %v, %v", all, err)
	}
}

// TestStale: a group whose resources are unknown is an error, not a gap.
func TestStale(t *testing.T) {
	f := newFake(t)
	f.serve("/apis", text(`{"groups":[{"name":"lost.io","versions":[{"version":"v1"}]}]}`))
	f.serve("/apis/lost.io/v1", refuse(http.StatusNotFound, "gone", 0))
	f.serve(maps, text(configMaps("9", "")))
	if _, _, err := collect(t, f.client(t, nil), remote.Options{}); err == nil || !strings.Contains(err.Error(), "lost.io/v1") {
		t.Errorf("the error is %v", err)
	}
}

// TestNoFileStays: neither while objects are collected, where the system allows it, nor
// afterwards is there a file with their content.
func TestNoFileStays(t *testing.T) {
	f := newFake(t)
	f.serve(maps, text(configMaps("9", "", "x")))
	dir := t.TempDir()
	got, err := f.client(t, nil).Collect(t.Context(), remote.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Close(); err != nil {
		t.Fatal(err)
	}
	f.serve(maps, text("x"))
	if _, err := f.client(t, nil).Collect(t.Context(), remote.Options{Dir: dir}); err == nil {
		t.Fatal("what is no list was collected")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v stay, %v", files, err)
	}
}
