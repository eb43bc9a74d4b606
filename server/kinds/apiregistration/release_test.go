package apiregistration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds/apiregistration"
	"github.com/rowlock/rowlock/server/servertest/stock"
)

// The APIServices of the versions that stock servers serve are theirs.
func TestLocalOfReleases(t *testing.T) {
	for _, s := range stock.Servers(t) {
		services := s.Objects["apiregistration.k8s.io/v1/apiservices"]
		if len(services) < 20 {
			t.Errorf("%s has %d APIServices", s.Name(), len(services))
		}
		for name, want := range services {
			spec := want.(map[string]any)["spec"].(map[string]any)
			group, _ := spec["group"].(string)
			local := apiregistration.Local(schema.GroupVersion{Group: group, Version: spec["version"].(string)})
			if local == nil {
				t.Errorf("%s: %s is not a built-in version", s.Name(), name)
				continue
			}
			if diff := cmp.Diff(want, any(stock.Kept(t, local))); diff != "" {
				t.Errorf("%s of %s: -stock +ours\n%s", name, s.Name(), diff)
			}
		}
	}
}
