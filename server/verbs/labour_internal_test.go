package verbs

import (
	"testing"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// TestLabour: large definitions take turns, small ones and what is no definition do not.
func TestLabour(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	definitions := catalogue.Lookup("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	pods := catalogue.Lookup("", "v1", "pods")
	for _, c := range []struct {
		name   string
		r      *kinds.Resource
		bytes  int
		weight int64
		want   int64
	}{
		{"a small definition", definitions, 16<<10 - 1, 5, 5},
		{"a large definition", definitions, 16 << 10, 5, budget.Small},
		{"one that weighs more", definitions, 1 << 20, 2 * budget.Small, 2 * budget.Small},
		{"a large Pod", pods, 1 << 20, 5, 5},
		{"what is never stored", &kinds.Resource{}, 1 << 20, 5, 5},
		{"no resource", nil, 1 << 20, 5, 5},
	} {
		if got := labour(c.r, make([]byte, c.bytes), c.weight); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
