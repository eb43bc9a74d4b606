package discovery_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// registry are the APIServices of a test.
type registry struct {
	list       []discovery.Service
	generation uint64
}

func (r *registry) services() ([]discovery.Service, uint64) { return r.list, r.generation }

func (r *registry) set(list ...discovery.Service) {
	r.list, r.generation = list, r.generation+1
}

// locals returns the APIServices of all built-in groups.
func locals(c *kinds.Catalogue) (list []discovery.Service) {
	seen := map[schema.GroupVersion]bool{}
	for _, r := range c.All() {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		if s := apiregistration.Local(gv); s != nil && !seen[gv] {
			seen[gv] = true
			list = append(list, discovery.Service{Group: gv.Group, Version: gv.Version, GroupPriority: s.Spec.GroupPriorityMinimum, VersionPriority: s.Spec.VersionPriority})
		}
	}
	return list
}

func newRegistered(t *testing.T, c *kinds.Catalogue) (*discovery.Handler, *registry) {
	t.Helper()
	r := &registry{}
	h, err := discovery.New(discovery.Config{
		Catalogue: c, Services: r.services, Codecs: []codecs.Codec{jsoncodec.Codec{}}, Version: version.Info{},
		Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, r
}

// groups returns the versions of each group in /apis, as "group v1,v2" in order.
func groups(t *testing.T, h http.Handler) (out []string) {
	t.Helper()
	var list metav1.APIGroupList
	if err := json.Unmarshal(get(h, "GET", "/apis", "").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	for _, g := range list.Groups {
		var versions []string
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
		}
		if g.PreferredVersion != g.Versions[0] {
			t.Errorf("%s prefers %v", g.Name, g.PreferredVersion)
		}
		out = append(out, g.Name+" "+strings.Join(versions, ","))
	}
	return out
}

// items returns the same of the aggregated document.
func items(t *testing.T, h http.Handler) (out []string, all map[string]discoveryv2.APIVersionDiscovery) {
	t.Helper()
	var list discoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(get(h, "GET", "/apis", aggregatedV2).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	all = map[string]discoveryv2.APIVersionDiscovery{}
	for _, g := range list.Items {
		var versions []string
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
			all[g.Name+"/"+v.Version] = v
		}
		out = append(out, g.Name+" "+strings.Join(versions, ","))
	}
	return out, all
}

// With the APIServices that the server writes itself, the documents are those of the
// catalogue.
func TestLocalServices(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	h, r := newRegistered(t, c)
	plain := groups(t, h)
	r.set(locals(c)...)
	if d := cmp.Diff(plain, groups(t, h)); d != "" {
		t.Error(d)
	}
	if plain[0] != "apiregistration.k8s.io v1" || plain[1] != "apps v1" {
		t.Errorf("first are %v", plain[:2])
	}
}

// Versions and groups are in the order of priorities; at the same priority, the version's maturity
// and the group's name decide.
func TestPriorities(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	h, r := newRegistered(t, c)
	remote := func(group, version string, groupPriority, versionPriority int32) discovery.Service {
		return discovery.Service{Group: group, Version: version, GroupPriority: groupPriority, VersionPriority: versionPriority,
			Remote: true, Discovery: &discoveryv2.APIVersionDiscovery{Version: version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}}
	}
	added := []discovery.Service{
		remote("low.example", "v1", 10, 15),
		remote("b.example", "v1", 500, 10), remote("b.example", "v2beta1", 500, 10), remote("b.example", "v0", 19999, 99), remote("b.example", "v10", 500, 10), remote("b.example", "v2", 1, 10),
		remote("c.example", "v2", 600, 1), remote("a.example", "v3", 600, 1),
	}
	r.set(append(locals(c), added...)...)
	plain, _ := items(t, h)
	if d := cmp.Diff([]string{"apiregistration.k8s.io v1", "b.example v0,v10,v2,v1,v2beta1", "apps v1"}, plain[:3]); d != "" {
		t.Error("aggregated: " + d)
	}
	if d := cmp.Diff([]string{"a.example v3", "c.example v2", "low.example v1"}, plain[len(plain)-3:]); d != "" {
		t.Error("aggregated, by the group's name: " + d)
	}
	list := groups(t, h)
	if d := cmp.Diff([]string{"apiregistration.k8s.io v1", "b.example v0,v10,v2,v1,v2beta1", "apps v1"}, list[:3]); d != "" {
		t.Error("plain: " + d)
	}
	if d := cmp.Diff([]string{"c.example v2", "a.example v3", "low.example v1"}, list[len(list)-3:]); d != "" {
		t.Error("plain, by the name of the APIService: " + d)
	}
	if w := get(h, "GET", "/apis/b.example", ""); !strings.Contains(w.Body.String(), `"preferredVersion":{"groupVersion":"b.example/v0"`) {
		t.Errorf("the group's document: %s", w.Body)
	}
}

// A group whose APIService is deleted is served, but not listed; a version leaves the
// document of its group.
func TestServicesThatAreGone(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	h, r := newRegistered(t, c)
	r.set(slices.DeleteFunc(locals(c), func(s discovery.Service) bool {
		return s.Group == "batch" || s.Group == "autoscaling" && s.Version == "v2"
	})...)
	list := groups(t, h)
	if slices.Contains(list, "batch v1") || !slices.Contains(list, "autoscaling v1") {
		t.Errorf("listed: %v", list)
	}
	if w := get(h, "GET", "/apis/batch", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"batch/v1"`) {
		t.Errorf("batch: %d %s", w.Code, w.Body)
	}
	if w := get(h, "GET", "/apis/autoscaling", ""); strings.Contains(w.Body.String(), `"autoscaling/v2"`) {
		t.Errorf("autoscaling: %s", w.Body)
	}
	for _, path := range []string{"/apis/batch/v1", "/apis/autoscaling/v2"} {
		if w := get(h, "GET", path, ""); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if all, _ := items(t, h); !slices.Contains(all, "batch v1") || !slices.Contains(all, "autoscaling v2,v1") {
		t.Errorf("aggregated: %v", all)
	}
}

// The aggregated document contains another server's answer as it is, in place of this server's for
// the same version, and follows changes.
func TestRemoteServices(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	h, r := newRegistered(t, c)
	entry := func(freshness discoveryv2.DiscoveryFreshness, resources ...string) *discoveryv2.APIVersionDiscovery {
		v := &discoveryv2.APIVersionDiscovery{Version: "v1", Freshness: freshness}
		for _, name := range resources {
			v.Resources = append(v.Resources, discoveryv2.APIResourceDiscovery{Resource: name, ResponseKind: &metav1.GroupVersionKind{Kind: "Some"}, Scope: discoveryv2.ScopeCluster, Verbs: []string{"get"}})
		}
		return v
	}
	r.set(append(locals(c), discovery.Service{Group: "x.example", Version: "v1", GroupPriority: 100, VersionPriority: 1, Remote: true, Discovery: entry(discoveryv2.DiscoveryFreshnessStale)},
		discovery.Service{Group: "batch", Version: "v1", GroupPriority: 17400, VersionPriority: 1, Remote: true, Discovery: entry(discoveryv2.DiscoveryFreshnessCurrent, "works")})...)
	if w := get(h, "GET", "/apis/x.example/v2", ""); w.Code != 404 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("a version that nobody serves: %d %v", w.Code, w.Header())
	}
	etag := get(h, "GET", "/apis", aggregatedV2).Header().Get("ETag")
	_, all := items(t, h)
	if got := all["x.example/v1"]; got.Freshness != "Stale" || len(got.Resources) != 0 {
		t.Errorf("stale: %+v", got)
	}
	if got := all["batch/v1"]; len(got.Resources) != 1 || got.Resources[0].Resource != "works" {
		t.Errorf("batch is served by another: %+v", got)
	}
	if w := get(h, "GET", "/apis", strings.ReplaceAll(aggregatedV2, "v=v2", "v=v2beta1")); !strings.Contains(w.Body.String(), `"Stale"`) {
		t.Error("the older form does not show staleness")
	}
	r.set(append(locals(c), discovery.Service{Group: "x.example", Version: "v1", GroupPriority: 100, VersionPriority: 1, Remote: true, Discovery: entry(discoveryv2.DiscoveryFreshnessCurrent, "things")})...)
	w := get(h, "GET", "/apis", aggregatedV2, "If-None-Match", etag)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"resource":"things"`) {
		t.Errorf("after a change: %d", w.Code)
	}
}

// Custom resources are listed before their APIServices have been written.
func TestCustomBeforeItsService(t *testing.T) {
	custom := &kinds.Resource{
		Group: "shop.example", Version: "v1", Plural: "parcels", Kind: "Parcel", Namespaced: true, Schema: kinds.AsStored{}, Verbs: []string{"get"},
		Storage: &kinds.Storage{Key: "parcels.shop.example", GVK: gvk("shop.example", "v1", "Parcel")},
	}
	c := kinds.NewCatalogue(append(builtin.Resources(), custom))
	h, r := newRegistered(t, c)
	r.set(slices.DeleteFunc(locals(c), func(s discovery.Service) bool { return s.Group == "shop.example" })...)
	if list := groups(t, h); list[len(list)-1] != "shop.example v1" {
		t.Errorf("listed: %v", list)
	}
}
