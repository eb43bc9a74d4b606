package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// Each row must be whole: what decodes, stores and lists it hangs on these.
func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range builtin.Resources() {
		name := r.GVR().String()
		if seen[name] {
			t.Errorf("%s stands in the table twice", name)
		}
		seen[name] = true
		if r.Singular != strings.ToLower(r.Kind) || r.ListKind == "" || len(r.Verbs) == 0 || !slices.IsSorted(r.Verbs) {
			t.Errorf("%s: singular %q, list kind %q, verbs %v", name, r.Singular, r.ListKind, r.Verbs)
		}
		if r.New == nil || r.New() == nil {
			t.Errorf("%s: New makes nothing", name)
		}
		if slices.Contains(r.Verbs, "list") && r.NewList == nil {
			t.Errorf("%s can be listed, but there is no list type", name)
		}
		if slices.Contains(r.Verbs, "update") != (r.Storage != nil) {
			t.Errorf("%s: verbs %v with storage %v", name, r.Verbs, r.Storage)
		}
		if s := r.Storage; s != nil && (s.Key == "" || s.GVK.Kind != r.Kind) {
			t.Errorf("%s: storage %q of %v", name, s.Key, s.GVK)
		}
	}
}

func TestSharedStorages(t *testing.T) {
	c := kinds.NewCatalogue(builtin.Resources())
	events, named := c.Lookup("", "v1", "events"), c.Lookup("events.k8s.io", "v1", "events")
	if events.Storage != named.Storage || c.ByStorage("events") != events {
		t.Error("events of core and of events.k8s.io are not one storage, held by core")
	}
	v1, v2 := c.Lookup("autoscaling", "v1", "horizontalpodautoscalers"), c.Lookup("autoscaling", "v2", "horizontalpodautoscalers")
	if v1.Storage != v2.Storage || c.ByStorage("horizontalpodautoscalers.autoscaling") != v2 {
		t.Error("autoscalers of v1 and v2 are not one storage, held by v2")
	}
	if got := c.Versions("autoscaling"); !slices.Equal(got, []string{"v2", "v1"}) {
		t.Errorf("versions of autoscaling: %v", got)
	}
}
