package cache

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestLabelsInCommon(t *testing.T) {
	long := strings.Repeat("v", 300) // its length takes two bytes
	for _, want := range []labels.Set{
		nil, {"a": ""}, {"": "x"}, {"app": "web", "tier": "edge", "example.com/long": long}, {"b": "1", "a": "2", "ab": "3"},
	} {
		got := newCommon(want, nil)
		if !maps.Equal(got.set(), want) {
			t.Errorf("%v came back as %v", want, got.set())
		}
		for _, key := range []string{"", "a", "ab", "b", "app", "tier", "example.com/long", "z"} {
			value, there := want[key]
			if v, ok := got.Lookup(key); v != value || ok != there || got.Has(key) != there || got.Get(key) != value {
				t.Errorf("%v: %q is %q, %v", want, key, v, ok)
			}
		}
		if newCommon(maps.Clone(want), nil) != got {
			t.Errorf("%v lies there twice", want)
		}
	}
	if newCommon(labels.Set{"a": "bc"}, nil) == newCommon(labels.Set{"ab": "c"}, nil) {
		t.Error("different labels are one set")
	}
}

func BenchmarkLabelsInCommon(b *testing.B) {
	set := newCommon(labels.Set{"app": "web-17", "pod-template-hash": "5d6f8c7b9", "tier": "edge", "topology.kubernetes.io/zone": "b"}, nil)
	selector := labels.SelectorFromSet(labels.Set{"tier": "edge"})
	b.ReportAllocs()
	for b.Loop() {
		if !selector.Matches(set) {
			b.Fatal("not selected")
		}
	}
}

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
