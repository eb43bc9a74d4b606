package objects_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestSizes: the configured size is the maximum; an object that was stored with a higher limit may keep its
// size.
func TestSizes(t *testing.T) {
	value := func(n int) []byte {
		const around = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"x":""}}`
		return []byte(strings.Replace(around, `"x":""`, `"x":"`+strings.Repeat("x", n-len(around))+`"`, 1))
	}
	larger, err := budget.SizesOf(2 << 20)
	if err != nil {
		t.Fatal(err)
	}
	stored := cache.NewOwnItem(&sqlstore.Row{Revision: 1234, Value: value(3 << 20)}, nil)
	for _, c := range []struct {
		what    string
		sizes   budget.Sizes
		bytes   int
		live    *cache.Item
		refused bool
	}{
		{"the default", budget.Sizes{}, budget.DefaultObject, nil, false},
		{"above the default", budget.Sizes{}, budget.DefaultObject + 1, nil, true},
		{"configured", larger, 2 << 20, nil, false},
		{"above what is configured", larger, 2<<20 + 1, nil, true},
		{"as large as before", larger, 3 << 20, stored, false},
		{"smaller than before", larger, 3<<20 - 1, stored, false},
		{"larger than before", larger, 3<<20 + 1, stored, true},
	} {
		s := objects.New(nil, nil, cache.New(nil))
		s.Bound(c.sizes)
		err := s.CheckSize(value(c.bytes), c.live)
		if c.refused {
			if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), fmt.Sprintf("the limit is %d", c.sizes.Object())) {
				t.Errorf("%s: %v", c.what, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
