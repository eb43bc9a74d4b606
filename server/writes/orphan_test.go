package writes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/writes"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestCreateAfterNamespace: an object is not created in a namespace that another server has deleted before, and keeps no claims.
func TestCreateAfterNamespace(t *testing.T) {
	for what, c := range map[string]struct{ anyNamespace, deleted, stays bool }{
		"the namespace is there":         {stays: true},
		"the namespace is gone":          {deleted: true},
		"objects may have no namespaces": {anyNamespace: true, deleted: true, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			first, second := twoDesks(t)
			second.AnyNamespace = c.anyNamespace
			key := sqlstore.Key{Resource: "namespaces", Name: "a"}
			value := []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}`)
			made, err := first.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: value})
			if err != nil {
				t.Fatal(err)
			}
			second.knows()
			if c.deleted {
				if _, err := first.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: made.Revisions[0], Value: value}); err != nil {
					t.Fatal(err)
				}
			}
			err = second.makeService(service("x", "", 0), false)
			if c.stays {
				if names := first.has("services"); err != nil || len(names) != 1 {
					t.Errorf("%v, stored %q", err, names)
				}
				return
			}
			if !apierrors.IsNotFound(err) {
				t.Errorf("the create ended with %v", err)
			}
			first.wantNone("services", "~serviceips", "~serviceports")
		})
	}
}

// meddler is a driver that calls before ahead of each commit.
type meddler struct {
	sqlstore.Driver
	before func(batch []sqlstore.Txn)
}

func (m *meddler) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	m.before(batch)
	return m.Driver.Apply(ctx, batch, now)
}

// TestCreateAfterNamespaceChanges: an object without a namespace is deleted also if a client changes it meanwhile.
func TestCreateAfterNamespaceChanges(t *testing.T) {
	memory := storetest.NewShared()
	first, driver := newDeskOn(t, memory.Open()), &meddler{Driver: storetest.WithoutHints{Driver: memory.Open()}}
	changes := 0
	driver.before = func(batch []sqlstore.Txn) {
		if op := batch[0].Ops[0]; op.Verb == sqlstore.Delete && op.Key.Resource == "configmaps" && changes < 2 {
			changes++
			first.set("x", "changed", time.Now().String())
		}
	}
	second := newDeskOn(t, driver)
	second.AnyNamespace = false
	key, value := sqlstore.Key{Resource: "namespaces", Name: "a"}, []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}`)
	made, err := first.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: value})
	if err == nil {
		second.knows()
		_, err = first.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: made.Revisions[0], Value: value})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Create(t.Context(), second.request("create", "configmaps", "", ""), configMap("x", nil)); !apierrors.IsNotFound(err) || changes != 2 {
		t.Errorf("%d changes, the create ended with %v", changes, err)
	}
	first.wantNone("configmaps")
}

// TestCreateAfterDefinition: a custom object whose definition ended while it was created is deleted again, so that no later
// definition of that name has it.
func TestCreateAfterDefinition(t *testing.T) {
	boats := func(namespaced, ending bool) *kinds.Resource {
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
		return &kinds.Resource{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "boats", Namespaced: namespaced, Ending: ending, Schema: kinds.AsStored{},
			Verbs: []string{"create"}, New: func() kinds.Object { return &unstructured.Unstructured{} },
			Storage: &kinds.Storage{Key: "boats.example.com", GVK: gvk, Strategy: kinds.Strategy{Meta: &kinds.MetaRules{Own: true}}},
		}
	}
	for what, c := range map[string]struct {
		namespaced bool
		then       func() []*kinds.Resource // the resources at the end of the create
		stays      bool
	}{
		"it is there":                     {namespaced: true, then: func() []*kinds.Resource { return []*kinds.Resource{boats(true, false)} }, stays: true},
		"it ends":                         {namespaced: true, then: func() []*kinds.Resource { return []*kinds.Resource{boats(true, true)} }},
		"it is gone":                      {namespaced: true, then: func() []*kinds.Resource { return nil }},
		"that of a cluster-wide resource": {then: func() []*kinds.Resource { return nil }},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			set := func(custom ...*kinds.Resource) { d.catalogue.Set(slices.Concat(builtin.Resources(), custom)) }
			r := boats(c.namespaced, false)
			set(r)
			d.Objects.FollowWith(func() { set(c.then()...) })
			req := &writes.Request{
				Resource: r, Namespace: "a", Verb: "create", User: &authx.Identity{Name: "ann"}, Permit: d.permit("create", r, "", ""),
				Warn: func(string) {}, Annotate: func(string, string) {},
			}
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": "b", "finalizers": []any{"example.com/stays"}}}}
			_, err := d.Create(t.Context(), req, obj)
			if stored := d.cache.Count("boats.example.com"); c.stays && (err != nil || stored != 1) || !c.stays && (!apierrors.IsForbidden(err) || stored != 0) {
				t.Errorf("%d objects are stored, the create ended with %v", stored, err)
			}
		})
	}
}
