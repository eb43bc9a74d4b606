package discovery_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

func customResource(group, plural string) *kinds.Resource {
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "K" + plural}
	return &kinds.Resource{Group: group, Version: "v1", Plural: plural, Kind: gvk.Kind, Verbs: []string{"get"}, Schema: kinds.AsStored{},
		Storage: &kinds.Storage{Key: plural + "." + group, GVK: gvk}}
}

// TestAggregatedText: the text that is put together is the one that the whole encodes to, before
// and after a version changes, and so is the tag.
func TestAggregatedText(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	codec := codecjson.New(codecjson.Settings{View: c.Release().View()})
	h := newHandler(t, c)
	tags := map[string]bool{}
	all := builtin.Resources()
	for i := range 4 {
		all = append(all, customResource(fmt.Sprintf("g%d.example.com", i%2), fmt.Sprintf("<ws%d>", i)))
		c.Set(all)
		for _, path := range []string{"/api", "/apis"} {
			w := get(h, "GET", path, aggregatedV2)
			list := &discoveryv2.APIGroupDiscoveryList{}
			if err := json.Unmarshal(w.Body.Bytes(), list); err != nil {
				t.Fatal(err)
			}
			if again, err := codec.Encode(nil, list); err != nil || !bytes.Equal(append(again, '\n'), w.Body.Bytes()) {
				t.Errorf("%s: %v, %s\nis not what it encodes to", path, err, w.Body)
			}
			if path == "/apis" {
				tags[w.Header().Get("ETag")] = true
			}
		}
	}
	if len(tags) != 4 {
		t.Errorf("four states have the tags %v", tags)
	}
}

// TestOnlyWhatIsAskedFor: a request for one group does not assemble the document of all groups.
func TestOnlyWhatIsAskedFor(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	h := newHandler(t, c)
	get(h, "GET", "/apis", aggregatedV2)
	c.Set(append(builtin.Resources(), customResource("late.example.com", "lates")))
	for _, path := range []string{"/apis/late.example.com/v1", "/apis/late.example.com", "/apis"} {
		if w := get(h, "GET", path, ""); w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte("late.example.com")) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if discovery.Together(h) {
			t.Fatalf("%s has the aggregated document made", path)
		}
	}
	if w := get(h, "GET", "/apis", aggregatedV2); !bytes.Contains(w.Body.Bytes(), []byte("late.example.com")) || !discovery.Together(h) {
		t.Errorf("the aggregated document: %s", w.Body)
	}
}

// TestBuiltInGroupsWaitForNobody: a version of built-in resources is shown without following definitions, until one
// comes into its group.
func TestBuiltInGroupsWaitForNobody(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	followed := 0
	h := newHandler(t, c, func(c *discovery.Config) { c.Follow = func() { followed++ } })
	at := followed
	for range 3 {
		c.Set(append(builtin.Resources(), customResource("late.example.com", "lates")))
		for _, path := range []string{"/api/v1", "/apis/apps/v1"} {
			if w := get(h, "GET", path, ""); w.Code != http.StatusOK || followed != at {
				t.Errorf("%s: %d, and definitions were followed %d times", path, w.Code, followed-at)
			}
		}
		if w := get(h, "POST", "/apis/apps/v1", ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("the wrong method: %d", w.Code)
		}
	}
	for path, code := range map[string]int{"/apis/late.example.com/v1": http.StatusOK, "/apis/apps/v9": http.StatusNotFound, "/apis/apps": http.StatusOK} {
		if w := get(h, "GET", path, ""); w.Code != code || followed == at {
			t.Errorf("%s: %d, and definitions were followed %d times", path, w.Code, followed-at)
		}
		at = followed
	}
	late := customResource("apps", "lates")
	late.Version = "v9"
	c.Set(append(builtin.Resources(), late))
	for _, path := range []string{"/apis/apps/v9", "/apis/apps/v1"} { // which is one of custom resources then
		if w := get(h, "POST", path, ""); w.Code != http.StatusOK || followed == at {
			t.Errorf("%s, where a definition has come into the group: %d", path, w.Code)
		}
		at = followed
	}
}

// TestManyResources: of many resources documents may be a little older than they are, and are
// made again soon.
func TestManyResources(t *testing.T) {
	all := builtin.Resources()
	for i := range 1200 {
		all = append(all, customResource(fmt.Sprintf("g%d.example.com", i/10), fmt.Sprintf("w%d", i)))
	}
	c := kinds.NewCatalogue(all)
	h := newHandler(t, c)
	c.Set(append(all, customResource("late.example.com", "lates")))
	for end := time.Now().Add(2 * time.Minute); get(h, "GET", "/apis/late.example.com/v1", "").Code != 200; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a definition that came late is not shown")
		}
	}
	if !bytes.Contains(get(h, "GET", "/apis", aggregatedV2).Body.Bytes(), []byte("late.example.com")) {
		t.Error("it is shown in its own document only")
	}
}

// TestMadeInBackground: while documents are made in the background, clients get the previous ones, and
// soon the new ones, compressed or not.
func TestMadeInBackground(t *testing.T) {
	all := builtin.Resources()
	for i := range 1200 {
		all = append(all, customResource(fmt.Sprintf("g%d.example.com", i/10), fmt.Sprintf("w%d", i)))
	}
	c := kinds.NewCatalogue(all)
	h := newHandler(t, c, func(c *discovery.Config) { c.Compress = true })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	for i := range 3 {
		name := fmt.Sprintf("late%d.example.com", i)
		all = append(all, customResource(name, "lates"))
		c.Set(all)
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			w := get(h, "GET", "/apis", aggregatedV2, "Accept-Encoding", "gzip")
			text := unzipped(t, w)
			if plain := get(h, "GET", "/apis", aggregatedV2); plain.Header().Get("ETag") == w.Header().Get("ETag") && !bytes.Equal(text, plain.Body.Bytes()) {
				t.Fatal("what was compressed is another document")
			}
			if bytes.Contains(text, []byte(name)) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not shown", name)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.Set(append(all, customResource("last.example.com", "lasts")))
	time.Sleep(time.Second) // so long documents may be served that are older
	if get(h, "GET", "/apis/last.example.com/v1", "").Code != http.StatusOK {
		t.Error("nobody makes documents once the loop has ended")
	}
}

// TestCompressed: large documents are compressed for clients that accept it, with the headers of
// other answers; small ones never are.
func TestCompressed(t *testing.T) {
	all := builtin.Resources()
	for i := range 1000 {
		all = append(all, customResource("one.example.com", fmt.Sprintf("w%d", i)))
	}
	for _, on := range []bool{true, false} {
		h := newHandler(t, kinds.NewCatalogue(all), func(c *discovery.Config) { c.Compress = on })
		for _, d := range []struct {
			path, accept string
			large        bool
			vary         []string
		}{
			{"/apis", aggregatedV2, true, []string{"Accept", "Accept-Encoding"}},
			{"/apis", "application/yaml", false, nil},
			{"/apis/one.example.com/v1", "", false, nil},
			{"/version", "", false, nil},
		} {
			plain := get(h, "GET", d.path, d.accept)
			w := get(h, "GET", d.path, d.accept, "Accept-Encoding", "br, gzip")
			if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != (on && d.large) {
				t.Errorf("%s of %d bytes: compressed is %v", d.path, plain.Body.Len(), packed)
			} else if packed && !slices.Equal(w.Header().Values("Vary"), d.vary) {
				t.Errorf("%s: it varies by %v", d.path, w.Header().Values("Vary"))
			}
			if !bytes.Equal(unzipped(t, w), plain.Body.Bytes()) {
				t.Errorf("%s is another document where gzip is taken", d.path)
			}
		}
	}
}

// unzipped returns the body of an answer, whichever way it came.
func unzipped(t *testing.T, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	if w.Header().Get("Content-Encoding") != "gzip" {
		return w.Body.Bytes()
	}
	r, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
