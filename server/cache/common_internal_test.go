package cache

import (
	"fmt"
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
		got := commonOf(want)
		if !maps.Equal(got.set(), want) {
			t.Errorf("%v came back as %v", want, got.set())
		}
		for _, key := range []string{"", "a", "ab", "b", "app", "tier", "example.com/long", "z"} {
			value, there := want[key]
			if v, ok := got.Lookup(key); v != value || ok != there || got.Has(key) != there || got.Get(key) != value {
				t.Errorf("%v: %q is %q, %v", want, key, v, ok)
			}
		}
	}
	if commonOf(labels.Set{"a": "bc"}).labels == commonOf(labels.Set{"ab": "c"}).labels {
		t.Error("different labels are one set")
	}
}

func commonOf(set labels.Set) *common { return (&near{}).common(appendLabels(nil, set), nil) }

// TestCommonInCopy: what is read of a copy is what was written, with as much shared, however many
// objects lie between equal ones; and damage is found.
func TestCommonInCopy(t *testing.T) {
	all := []*common{nil}
	for i := range 3 * mostNear {
		all = append(all, &common{appendedLabels(i % 41), appendedOwner(i / 20)})
	}
	all = append(all, nil, all[len(all)-1], &common{all[5].labels, ""}, &common{"", all[5].owners})
	var text []byte
	var to near
	for _, c := range all {
		text = to.record(text, c)
	}
	from, left := near{}, cursor{b: text}
	for i, want := range all {
		got, ok := from.read(&left)
		if !ok || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Fatalf("%d: %v is %v", i, want, got)
		}
	}
	if len(left.b) > 0 || from.next != to.next {
		t.Error("something is left")
	}
	for _, bad := range []string{
		"", "\x01", "\x21", "\xff", "\x00", "\x00\x00", "\x00\x00\x00", "\x00\x00\x00\x00",
		"\x00\x01\x00\x00", "\x00\x00\x00\x20", "\x00\x21\x00\x00", "\x00\xff\x00\x00", // parts of what was not seen
		"\x00\x00\x02\x01a\x00\x00", "\x00\x00\x00\x00\x01\x01", "\x00\x00\x05ab", "\x00\x00\x00\x00\x05ab",
	} {
		if c, ok := (&near{}).read(&cursor{b: []byte(bad)}); ok {
			t.Errorf("%q is %v", bad, c)
		}
	}
}

func appendedLabels(i int) string {
	return string(appendLabels(nil, labels.Set{"n": strings.Repeat("x", i)}))
}

func appendedOwner(i int) string {
	kept, _ := appendKeptOwners(nil, fmt.Appendf(nil, `[{"apiVersion":"v1","kind":"A","name":"a-%d","uid":"%d"}]`, i, i))
	return string(kept)
}

func BenchmarkLabelsInCommon(b *testing.B) {
	set := commonOf(labels.Set{"app": "web-17", "pod-template-hash": "5d6f8c7b9", "tier": "edge", "topology.kubernetes.io/zone": "b"})
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
