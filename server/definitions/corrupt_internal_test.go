package definitions

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
)

// TestCorrupt: a definition that cannot be read serves nothing, though its bytes decode.
func TestCorrupt(t *testing.T) {
	const value = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"gadgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
		"status":{"acceptedNames":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},"storedVersions":["v1"],
		"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}}`
	f := &Follower{log: slog.New(slog.DiscardHandler), known: map[string]*served{}}
	f.take(&cache.Item{Name: "gadgets.example.com", JSON: []byte(value)})
	if len(f.known) != 1 {
		t.Fatal("a definition that can be read is not served")
	}
	f.take(&cache.Item{Name: "gadgets.example.com", JSON: []byte(value), Corrupt: errors.New("not what it should be")})
	if len(f.known) != 0 {
		t.Error("a definition that cannot be read is served")
	}
}
