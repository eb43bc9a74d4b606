package writes_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	memory := storetest.NewMemory()
	first, driver := newDeskOn(t, memory), &meddler{Driver: storetest.Deaf{Driver: memory.Again()}}
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
