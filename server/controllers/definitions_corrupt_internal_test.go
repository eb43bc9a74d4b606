package controllers

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
)

// TestCorruptDefinitions: what cannot be read defines nothing, though its bytes decode,
// as those of a definition of another name that is being deleted.
func TestCorruptDefinitions(t *testing.T) {
	const other = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",` +
		`"metadata":{"name":"gadgets.example.com","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"group":"example.com"}}`
	d := &Definitions{Cache: cache.New(nil), Log: slog.New(slog.DiscardHandler), known: map[string]*definition{}}
	changed := map[string]bool{}
	d.take(&cache.Item{Name: "widgets.example.com", JSON: []byte(other)}, changed)
	if len(d.known) != 1 {
		t.Fatal("a definition that can be read is not taken")
	}
	for _, value := range []string{other, "null"} {
		clear(changed)
		d.take(&cache.Item{Name: "widgets.example.com", JSON: []byte(value), Corrupt: errors.New("another name")}, changed)
		if len(d.known) != 0 {
			t.Errorf("%s defines %d", value, len(d.known))
		}
	}
}
