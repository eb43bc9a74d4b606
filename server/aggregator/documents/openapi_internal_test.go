package documents

import (
	"testing"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// TestDocumentsAreOfTheirNumber: no document is stored between the reads of the APIServices and of the number;
// otherwise documents of some servers would have the number of more of them.
func TestDocumentsAreOfTheirNumber(t *testing.T) {
	none := aggregator.New(aggregator.Config{Cache: cache.New(kinds.NewCatalogue(nil))}).Services()
	looked := false
	var d *Documents
	d = New(Config{Services: func() *aggregator.Services {
		if looked = true; d.mu.TryLock() {
			d.mu.Unlock()
			t.Error("the answer of a server may be stored meanwhile")
		}
		return none
	}})
	if list, _ := d.OpenAPI2(); len(list) != 0 || !looked {
		t.Errorf("%v, looked at the APIServices: %v", list, looked)
	}
}
