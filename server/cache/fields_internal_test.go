package cache

import (
	"reflect"
	"testing"
)

// TestFieldsWithoutLabels: who asks a packed item for its fields has no map made of its labels, and
// who asks for all of it gets them.
func TestFieldsWithoutLabels(t *testing.T) {
	it := packed(t, withMetadata("a", `,"labels":{"x":"1","y":"2"}`))
	lean, whole := it.fieldMeta(), it.Meta()
	if lean.Labels != nil || len(whole.Labels) != 2 {
		t.Errorf("labels are %v, and %v", lean.Labels, whole.Labels)
	}
	if whole.Labels = nil; !reflect.DeepEqual(lean, whole) {
		t.Errorf("%+v is not %+v", lean, whole)
	}
}
