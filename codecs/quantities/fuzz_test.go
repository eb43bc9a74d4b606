package quantities_test

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/codecs/quantities"
)

// FuzzFits: text that fits can be read at little cost, and text that does not fit is found in the document
// and in the tree that hold it.
func FuzzFits(f *testing.F) {
	for _, s := range []string{"1", "100m", "1e3", "1E99999", "-1e-10000", ".5Gi", "1e+00001", "007", "1e9999", "e12345", "1u"} {
		f.Add(s)
	}
	looksLikeOne := regexp.MustCompile(`^[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkKMGTPEi]{0,2})$`)
	resources := reflect.TypeFor[corev1.ResourceRequirements]()
	f.Fuzz(func(t *testing.T, text string) {
		tree := map[string]any{"limits": map[string]any{"cpu": text}}
		refused := quantities.CheckTree(tree, resources)
		if fits := quantities.Fits(text); fits != (refused == nil) || fits != quantities.Fits([]byte(text)) {
			t.Fatalf("%q: fits %v, %v", text, fits, refused)
		}
		if refused != nil {
			if data, err := json.Marshal(tree); err == nil && looksLikeOne.MatchString(text) && !quantities.Suspect(data) {
				t.Fatalf("%q is not found", text)
			}
			return
		}
		q, err := resource.ParseQuantity(text)
		if size := math.Abs(q.AsApproximateFloat64()); err != nil || size > 1e18 {
			return // the library has no unit for larger values, and writes them without one
		}
		if again, err := resource.ParseQuantity(q.String()); err != nil || again.Cmp(q) != 0 {
			t.Fatalf("%q: %s, then %s, %v", text, q.String(), again.String(), err)
		}
	})
}
