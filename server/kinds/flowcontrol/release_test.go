package flowcontrol_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/servertest/stock"
)

// The flow schemas and priority levels of each release are those of a stock server.
func TestDefaultsOfReleases(t *testing.T) {
	for _, s := range stock.Servers(t) {
		schemas, levels := map[string]any{}, map[string]any{}
		for _, f := range flowcontrol.FixedSchemas(s.Release) {
			kept := stock.Kept(t, f.Object)
			schemas[stock.Name(kept)] = kept
		}
		for _, f := range flowcontrol.FixedLevels() {
			kept := stock.Kept(t, f.Object)
			levels[stock.Name(kept)] = kept
		}
		for resource, got := range map[string]map[string]any{"flowschemas": schemas, "prioritylevelconfigurations": levels} {
			if diff := cmp.Diff(s.Objects["flowcontrol.apiserver.k8s.io/v1/"+resource], got); diff != "" {
				t.Errorf("%s of %s: -stock +ours\n%s", resource, s.Name(), diff)
			}
		}
	}
}
