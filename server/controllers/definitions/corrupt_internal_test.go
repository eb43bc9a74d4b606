package definitions

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestCorruptDefinitions: an unreadable definition defines nothing, even if its bytes decode,
// as those of a definition of another name that is being deleted.
func TestCorruptDefinitions(t *testing.T) {
	const other = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",` +
		`"metadata":{"name":"gadgets.example.com","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"group":"example.com"}}`
	d := &Controller{Base: reconcile.Base{Cache: cache.New(nil), Log: slog.New(slog.DiscardHandler)}, known: map[string]*definition{}, groups: map[string]map[string]*definition{}}
	row := func(value string) *sqlstore.Row {
		key := sqlstore.Key{Resource: "customresourcedefinitions.apiextensions.k8s.io", Name: "widgets.example.com"}
		return &sqlstore.Row{Key: key, Value: []byte(value)}
	}
	d.take(cache.NewOwnItem(row(other), nil))
	if len(d.known) != 1 {
		t.Fatal("a definition that can be read is not taken")
	}
	for _, value := range []string{other, "null"} {
		damaged := row(value)
		damaged.Damaged = errors.New("another name")
		d.take(cache.NewItem(d.Cache.JSON(), damaged, nil))
		if len(d.known) != 0 {
			t.Errorf("%s defines %d", value, len(d.known))
		}
	}
}
