package cache_test

import (
	"context"
	"errors"
	"slices"
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

// CheckRows finds the damage if values are compared.
func (s damagedSource) CheckRows(ctx context.Context, values bool, page func([]sqlstore.Row) error) error {
	if !values {
		return nil
	}
	return s.ReadAll(ctx, 2, page)
}

// TestDamagedRows: an object whose row is damaged is a corrupt one, and one whose damage is found later is reported until
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
	if it := c.Get("configmaps", "n", "b"); it == nil || it.Err() != damage || it.Sealed() {
		t.Errorf("the object is %+v", it)
	}
	if _, err := c.Load(t.Context(), damagedSource{}); err != nil {
		t.Fatal(err)
	}
	corrupt(0, "loaded without")
	if found, err := c.CheckRows(t.Context(), damagedSource{damage}, true, 1); err != nil || len(found) != 1 {
		t.Errorf("the check found %v, %v", found, err)
	}
	corrupt(1, "found by the check")
	value := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"n","uid":"u"}}`)
	c.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: "b"}, Revision: 3, Created: 2, Value: value}, PrevRevision: 2}})
	corrupt(0, "written anew")
}

// unlike is a source whose table and indexes differ.
type unlike struct {
	damagedSource
	differ []sqlstore.Row
}

func (s unlike) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	return errors.Join(s.damagedSource.ReadAll(ctx, revision, take), sqlstore.ErrIndexMismatch)
}

func (s unlike) CheckRows(_ context.Context, _ bool, page func([]sqlstore.Row) error) error {
	return errors.Join(page(nil), page(s.differ))
}

// TestIndexMismatch: an object that a start finds only in the table or only in one of its indexes is corrupt,
// whether it was read or not; without a difference, nothing is loaded.
func TestIndexMismatch(t *testing.T) {
	row := func(name string, revision, superseded int64) sqlstore.Row {
		return sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: name}, Revision: revision, Superseded: superseded, Value: []byte{}, Damaged: errors.New("damaged in the database: a test")}
	}
	names := func(c *cache.Cache) (names []string) {
		for _, item := range c.Corrupt() {
			names = append(names, item.Key.Name)
		}
		return names
	}
	source := unlike{differ: []sqlstore.Row{row("b", 2, 0), row("lost", 0, 0), row("gone", 1, 2), row("late", 5000, 0)}}
	c := cache.New(kinds.NewCatalogue(builtin.Resources()))
	if _, err := c.Load(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if got := names(c); !slices.Equal(got, []string{"b", "lost"}) {
		t.Errorf("corrupt are %v", got)
	}
	if it := c.Get("configmaps", "n", "a"); it == nil || it.Err() != nil {
		t.Errorf("what does not differ is %+v", it)
	}
	c = cache.New(kinds.NewCatalogue(builtin.Resources()))
	if _, err := c.Load(t.Context(), unlike{}); !errors.Is(err, sqlstore.ErrIndexMismatch) {
		t.Errorf("without anything that differs: %v", err)
	}
	if _, err := c.Load(t.Context(), damagedSource{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CheckRows(t.Context(), unlike{differ: source.differ[:1]}, false, 1); err != nil || !slices.Equal(names(c), []string{"b"}) {
		t.Errorf("the check found %v, %v", names(c), err)
	}
	if found, err := c.CheckRows(t.Context(), unlike{}, true, 1); err != nil || len(found) != 0 {
		t.Errorf("the check of a table without damage found %v, %v", found, err)
	}
}
