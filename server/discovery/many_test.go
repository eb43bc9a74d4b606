package discovery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
			if again, err := json.Marshal(list); err != nil || !bytes.Equal(append(again, '\n'), w.Body.Bytes()) {
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
	for end := time.Now().Add(30 * time.Second); get(h, "GET", "/apis/late.example.com/v1", "").Code != 200; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a definition that came late is not shown")
		}
	}
	if !bytes.Contains(get(h, "GET", "/apis", aggregatedV2).Body.Bytes(), []byte("late.example.com")) {
		t.Error("it is shown in its own document only")
	}
}
