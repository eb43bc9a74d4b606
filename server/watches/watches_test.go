package watches_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/sqlstore"
)

// added words the event of an object of fill's as it was made.
func (s *site) added(name string) string {
	return fmt.Sprintf("ADDED %s=1@%d", name, s.Cache.Get("configmaps", "ns", name).Revision)
}

func TestWatchOverTheWire(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	now, first := s.Cache.Revision(), s.added("a")
	for _, tc := range []struct {
		query string
		want  string
	}{
		{fmt.Sprint("resourceVersion=", before), fmt.Sprintf("MODIFIED b=2@%d, ADDED f=1@%d", now-1, now)},
		{fmt.Sprint("labelSelector=k%3Dx&resourceVersion=", before), fmt.Sprintf("DELETED b=1@%d, ADDED f=1@%d", now-1, now)},
		{fmt.Sprint("labelSelector=k%3Dy&resourceVersion=", before), fmt.Sprintf("ADDED b=2@%d", now-1)},
		{fmt.Sprint("fieldSelector=metadata.name%3Df&resourceVersion=", before), fmt.Sprintf("ADDED f=1@%d", now)},
		{"fieldSelector=metadata.name%3Da&resourceVersion=0", first},
		{"fieldSelector=metadata.name%3Da", first},
		{"fieldSelector=metadata.name%3Da&allowWatchBookmarks=true", fmt.Sprintf("%s, BOOKMARK =@%d", first, now)},
		{"resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", ""},
	} {
		_, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&"+tc.query)
		if all := servertest.Events(t, b); all != tc.want {
			t.Errorf("%s: %s, want %s", tc.query, all, tc.want)
		}
	}
}

func TestWatchOfLostHistory(t *testing.T) {
	s := newSiteWith(t, sqlstore.Config{Retention: 10 * time.Millisecond, CompactEvery: 10 * time.Millisecond})
	s.PutConfigMaps()
	s.Compacted(t, s.Cache.Revision())
	s.Forget(t)
	code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&resourceVersion=2")
	var e servertest.Event
	if err := json.Unmarshal(b, &e); err != nil || code != 200 || e.Type != "ERROR" || e.Object.Code != 410 {
		t.Errorf("%d %s", code, b)
	}
}

// TestWatchOfTheFuture waits for the version that initial events are to be of, and
// ends with an error, as the request itself was good.
func TestWatchOfTheFuture(t *testing.T) {
	s := newSite(t)
	code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=9&resourceVersion=1000&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	var e servertest.Event
	if err := json.Unmarshal(b, &e); err != nil || code != 200 || e.Type != "ERROR" || e.Object.Code != 504 {
		t.Errorf("%d %s", code, b)
	}
	if code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=-1"); code != 200 || len(b) > 0 {
		t.Errorf("a watch whose time is up before it begins: %d %s", code, b)
	}
}

// TestWatchFromTheTable reads changes that memory has never seen.
func TestWatchFromTheTable(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	s.Forget(t)
	_, _, b := s.Fetch(t, fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&labelSelector=k%3Dx&resourceVersion=", before))
	if n := strings.Count(string(b), "\n"); n != 2 || !strings.Contains(string(b), `"type":"DELETED"`) {
		t.Errorf("%s", b)
	}
}

func TestWatchIsLive(t *testing.T) {
	s := newSite(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Plain+"/api/v1/configmaps?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 20 {
		revision := s.Put("configmaps", "ns", "a", servertest.ConfigMap("a", "", fmt.Sprint(i)))
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		var e servertest.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Object.Metadata.ResourceVersion != fmt.Sprint(revision) {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
	}
}

// redefining changes the definitions between the look at them and the begin of a watch.
type redefining struct {
	watches.Measure
	change func()
}

func (r redefining) Watch(*kinds.Resource) func(int) {
	r.change()
	return func(int) {}
}

func (redefining) InitialEvents(*kinds.Resource, *request.Info, time.Duration) {}

// TestWatchOfAFormerDefinition: a watch of a custom resource ends at once if its definition has changed, and the watches of the former
// one were ended, just before it began.
func TestWatchOfAFormerDefinition(t *testing.T) {
	const storage = "buoys.example.com"
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Buoy"}
	buoys := func() []*kinds.Resource {
		return []*kinds.Resource{{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "buoys", Namespaced: true, Verbs: []string{"get", "list", "watch"},
			Schema: kinds.AsStored{}, New: func() kinds.Object { return &unstructured.Unstructured{} }, Storage: &kinds.Storage{Key: storage, GVK: gvk},
		}}
	}
	for _, changes := range []bool{false, true} {
		catalogue := kinds.NewCatalogue(buoys())
		c := cache.New(catalogue)
		defer c.Close()
		c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
			Key: sqlstore.Key{Resource: storage, Namespace: "ns", Name: "a"}, Revision: 1,
			Value: []byte(`{"apiVersion":"example.com/v1","kind":"Buoy","metadata":{"name":"a","namespace":"ns","uid":"u"}}`),
		}}})
		stored := objects.New(catalogue, nil, c)
		shown := &answers.Answers{Items: stored}
		measure := redefining{change: func() {
			if changes {
				catalogue.Set(buoys())
				c.End(storage)
			}
		}}
		h := scoped(&verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown, Measure: measure, Log: slog.New(slog.DiscardHandler)}})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/v1/namespaces/ns/buoys?watch=1&timeoutSeconds=1&resourceVersion=0", nil))
		if sent := w.Body.Len() > 0; w.Code != http.StatusOK || sent == changes {
			t.Errorf("the definition changes: %t, the watch answers with %d %s", changes, w.Code, w.Body)
		}
	}
}
