package cache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// damagedSource has two objects, of which some reads find one damaged.
type damagedSource struct{ damaged error }

func (damagedSource) Head(context.Context) (int64, error) { return 2, nil }

func (s damagedSource) ReadAll(_ context.Context, _ int64, take func([]sqlstore.Row) error) error {
	row := func(name string, revision int64, damaged error) sqlstore.Row {
		value := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"n","uid":"u"}}`
		return sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: name}, Revision: revision, Created: revision, Value: []byte(value), Damaged: damaged}
	}
	return take([]sqlstore.Row{row("a", 1, nil), row("b", 2, s.damaged)})
}

// TestDamagedRows: an object whose row is damaged is a corrupt one, and one whose damage is found later is told of until
// it is written anew.
func TestDamagedRows(t *testing.T) {
	damage := errors.New("damaged in the database: a test")
	c := cache.New(kinds.NewCatalogue(builtin.Resources()))
	corrupt := func(want int, when string) {
		t.Helper()
		list := c.Corrupt()
		if len(list) != want || want == 1 && (list[0].Key.Name != "b" || list[0].Reason != damage) {
			t.Errorf("%s: %v", when, list)
		}
	}
	if _, err := c.Load(t.Context(), damagedSource{damage}); err != nil {
		t.Fatal(err)
	}
	corrupt(1, "loaded with damage")
	if it := c.Get("configmaps", "n", "b"); it == nil || it.Corrupt != damage || it.Sealed {
		t.Errorf("the object is %+v", it)
	}
	if _, err := c.Load(t.Context(), damagedSource{}); err != nil {
		t.Fatal(err)
	}
	corrupt(0, "loaded without")
	if found, err := c.CheckRows(t.Context(), damagedSource{damage}, 1); err != nil || len(found) != 1 {
		t.Errorf("the check found %v, %v", found, err)
	}
	corrupt(1, "found by the check")
	value := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"n","uid":"u"}}`)
	c.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: "b"}, Revision: 3, Created: 2, Value: value}, PrevRevision: 2}})
	corrupt(0, "written anew")
}
