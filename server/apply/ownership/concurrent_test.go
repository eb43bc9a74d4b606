package ownership_test

import (
	"sync"
	"testing"
)

// One Ownership serves all requests at once.
func TestOwnershipIsConcurrent(t *testing.T) {
	f := setUp(t)
	r := f.resource("", "configmaps")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				obj := configMap(map[string]string{"a": "1"})
				if err := f.AfterCreate(r, "", obj, "m", start); err != nil {
					t.Error(err)
				}
				if _, _, err := f.Apply(r, "", nil, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}}`), "a", false, start); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
