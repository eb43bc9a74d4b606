package definitions_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// cluster is a cache with a catalogue that follows it.
type cluster struct {
	t         *testing.T
	cache     *cache.Cache
	catalogue *kinds.Catalogue
	follower  *definitions.Follower
	live      map[string]sqlstore.Row
	revision  int64
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, catalogue: kinds.NewCatalogue(builtin.Resources()), live: map[string]sqlstore.Row{}}
	c.cache = cache.New(c.catalogue)
	c.follower = definitions.New(c.catalogue, c.cache, nil, slog.New(slog.DiscardHandler))
	return c
}

// set stores a definition, and deletes it where crd is nil.
func (c *cluster) set(name string, crd *apiextensionsv1.CustomResourceDefinition) {
	c.t.Helper()
	old, was := c.live[name]
	c.revision++
	row := sqlstore.Row{Key: sqlstore.Key{Resource: definitions.Storage, Name: name}, Revision: c.revision, Value: old.Value, Deleted: crd == nil}
	if crd != nil {
		data, err := json.Marshal(crd)
		if err != nil {
			c.t.Fatal(err)
		}
		row.Value = data
		c.live[name] = row
	}
	ch := sqlstore.Change{Row: row}
	if was {
		ch.PrevRevision, ch.PrevValue = old.Revision, old.Value
	}
	c.cache.Apply([]sqlstore.Change{ch})
}

// resource looks a resource up as a request does.
func (c *cluster) resource(version string) *kinds.Resource {
	c.follower.Follow()
	return c.catalogue.Lookup("example.com", version, "lamps")
}

func lamps(established apiextensionsv1.ConditionStatus, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "lamps.example.com", UID: "1", Generation: int64(len(versions))},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Singular: "lamp", Kind: "Lamp", ListKind: "LampList"},
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: v != "v0", Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: established}}
	return crd
}

func TestCatalogueFollows(t *testing.T) {
	c := newCluster(t)
	if c.resource("v1") != nil {
		t.Fatal("a resource without a definition")
	}
	c.set("lamps.example.com", lamps(apiextensionsv1.ConditionFalse, "v1"))
	if c.resource("v1") != nil {
		t.Error("a resource of a definition that is not established")
	}
	c.set("lamps.example.com", lamps(apiextensionsv1.ConditionTrue, "v1"))
	first := c.resource("v1")
	if first == nil || first.Kind != "Lamp" || first.HasGoType() || first.Storage.Key != "lamps.example.com" {
		t.Fatalf("established: %+v", first)
	}
	if first.Schema.Clean(c.revision) || !first.Schema.Clean(c.revision+1) {
		t.Error("what was stored before the schema was known is not clean, what comes later is")
	}
	since := c.revision
	again := lamps(apiextensionsv1.ConditionTrue, "v1")
	again.Labels = map[string]string{"a": "b"}
	c.set("lamps.example.com", again)
	if c.resource("v1") != first {
		t.Error("a label makes another resource")
	}
	c.set("lamps.example.com", lamps(apiextensionsv1.ConditionTrue, "v1", "v2", "v0"))
	second := c.resource("v1")
	switch {
	case second == first || c.resource("v2") == nil:
		t.Error("new versions are not served")
	case !c.resource("v0").Off:
		t.Error("a version that is not served is")
	case !second.Schema.Clean(since + 1):
		t.Error("what was stored by the same schema is clean still")
	case c.resource("v2").Schema.Clean(c.revision + 1):
		t.Error("what is stored is an object of another version")
	case c.follower.Version(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Lamp"}) == nil:
		t.Error("nothing is known of the version")
	}
	if r := c.catalogue.ByStorage("lamps.example.com"); r != second {
		t.Errorf("stored as %v", r)
	}
	c.set("lamps.example.com", nil)
	if c.resource("v1") != nil || c.resource("v2") != nil {
		t.Error("a resource outlives its definition")
	}
	if c.catalogue.Lookup("", "v1", "pods") == nil {
		t.Error("built-in resources are gone")
	}
}

func TestWatchesEndWithTheirResource(t *testing.T) {
	c := newCluster(t)
	c.set("lamps.example.com", lamps(apiextensionsv1.ConditionTrue, "v1"))
	c.resource("v1")
	w, _ := c.cache.WatchNow("lamps.example.com", cache.Scope{})
	defer w.Stop()
	c.revision++
	c.cache.Apply([]sqlstore.Change{{Row: sqlstore.Row{
		Key: sqlstore.Key{Resource: "lamps.example.com", Namespace: "n", Name: "x"}, Revision: c.revision,
		Value: []byte(`{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"x"}}`),
	}}})
	c.set("lamps.example.com", lamps(apiextensionsv1.ConditionTrue, "v1", "v2"))
	c.resource("v1")
	if batch, _, err := w.Take(t.Context(), nil); err != nil || len(batch) != 1 {
		t.Fatalf("what was on its way: %d, %v", len(batch), err)
	}
	if _, _, err := w.Take(t.Context(), nil); !errors.Is(err, cache.ErrEnded) {
		t.Errorf("after that: %v", err)
	}
}

// TestShadowsAreNotServed: a definition that was established under the name of a
// built-in resource, or was given it, is not served, and does not end its watches.
func TestShadowsAreNotServed(t *testing.T) {
	c := newCluster(t)
	shadow := lamps(apiextensionsv1.ConditionTrue, "v1alpha9")
	shadow.Name, shadow.Spec.Group = "lamps.rbac.authorization.k8s.io", "rbac.authorization.k8s.io"
	shadow.Status.AcceptedNames.Plural = "clusterrolebindings"
	w, _ := c.cache.WatchNow("clusterrolebindings.rbac.authorization.k8s.io", cache.Scope{})
	defer w.Stop()
	before := c.catalogue.ByStorage("clusterrolebindings.rbac.authorization.k8s.io")
	for _, versions := range [][]string{{"v1alpha9"}, {"v1alpha9", "v1"}} {
		next := lamps(apiextensionsv1.ConditionTrue, versions...)
		next.Name, next.Spec.Group, next.Status.AcceptedNames = shadow.Name, shadow.Spec.Group, shadow.Status.AcceptedNames
		c.set(next.Name, next)
		c.follower.Follow()
		if r := c.catalogue.Lookup("rbac.authorization.k8s.io", "v1alpha9", "clusterrolebindings"); r != nil {
			t.Errorf("with %q it is served", versions)
		}
		if r := c.catalogue.Lookup("rbac.authorization.k8s.io", "v1", "clusterrolebindings"); r != before || !r.HasGoType() {
			t.Errorf("with %q the built-in resource is another", versions)
		}
	}
	select {
	case <-w.Ready():
		t.Error("its watches end")
	default:
	}
}
