package cache

import (
	"reflect"
	"testing"
)

// TestFieldsWithoutLabels: the fields of a packed item come without a map of its labels, and without a text of its UID and
// its creation; its whole metadata has them all.
func TestFieldsWithoutLabels(t *testing.T) {
	it := packed(t, withMetadata("a", `,"labels":{"x":"1","y":"2"}`))
	lean, whole := it.fieldMeta(), it.Meta()
	if lean.Labels != nil || len(whole.Labels) != 2 {
		t.Errorf("labels are %v, and %v", lean.Labels, whole.Labels)
	}
	if whole.UID != "a-uid" {
		t.Errorf("the UID is %q", whole.UID)
	}
	whole.UID, whole.CreationTimestamp = "", ""
	if whole.Labels = nil; !reflect.DeepEqual(lean, whole) {
		t.Errorf("%+v is not %+v", lean, whole)
	}
}
