package builtin_test

import (
	"encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// Cells are kept with marks in place of ages: filled in, they must be the cells
// that would have been made at that time.
func TestKeptCells(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for _, resource := range catalogue.All() {
		if resource.Columns.Cells == nil {
			continue
		}
		newObject := resource.New
		if resource.Storage != nil {
			newObject = catalogue.ByStorage(resource.Storage.Key).New // cells are made from the stored form
		}
		for range 20 {
			obj := newObject()
			sample.Fill(r, obj)
			kept, err := table.Cells(resource.Columns.Cells(obj, time.Time{}))
			if err != nil {
				t.Fatalf("%v: %v", resource.GVK(), err)
			}
			want := resource.Columns.Cells(obj, now)
			if len(want) != len(resource.Columns.Definitions)+undefined[resource.Kind] {
				t.Fatalf("%v: %d cells for %d columns", resource.GVK(), len(want), len(resource.Columns.Definitions))
			}
			encoded, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(encoded), string(kept.AppendCells(nil, now))); diff != "" {
				t.Fatalf("%v: %s", resource.GVK(), diff)
			}
		}
	}
}
