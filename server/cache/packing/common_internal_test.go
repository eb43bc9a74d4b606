package packing

import (
	"fmt"
	"maps"
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
		if !maps.Equal(got.Set(), want) {
			t.Errorf("%v came back as %v", want, got.Set())
		}
		for _, key := range []string{"", "a", "ab", "b", "app", "tier", "example.com/long", "z"} {
			value, there := want[key]
			if v, ok := got.Lookup(key); v != value || ok != there || got.Has(key) != there || got.Get(key) != value {
				t.Errorf("%v: %q is %q, %v", want, key, v, ok)
			}
		}
	}
	if SameLabels(commonOf(labels.Set{"a": "bc"}), commonOf(labels.Set{"ab": "c"})) || SameLabels(nil, commonOf(labels.Set{"": ""})) {
		t.Error("different labels are one set")
	}
}

func commonOf(set labels.Set) *Common {
	return (&Interner{}).Common(AppendLabels(nil, set), nil)
}

// TestCommonRecorded: the same labels and owners are read back, as much shared as before, however
// many objects lie between equal ones; and damage is found.
func TestCommonRecorded(t *testing.T) {
	all := []*Common{nil}
	for i := range 3 * internerSize {
		all = append(all, madeOf(appendedLabels(i%41*3), appendedOwner(i/20)))
	}
	all = append(all, nil, all[len(all)-1], madeOf(appendedLabels(12), ""), madeOf("", all[5].Owners()))
	var text []byte
	var to Interner
	for _, c := range all {
		text = to.Record(text, c)
	}
	from, left := Interner{}, NewCursor(text)
	var read []*Common
	for i, want := range all {
		got, ok := from.Read(&left)
		if !ok || (got == nil) != (want == nil) {
			t.Fatalf("%d: %v is %v", i, want, got)
		}
		read = append(read, got)
	}
	for i, want := range all {
		if got := read[i]; got.texts() != want.texts() {
			t.Errorf("%d: %v is %v", i, want, got)
		}
	}
	if left.Left() > 0 || from.next != to.next {
		t.Error("something is left")
	}
	for _, bad := range []string{
		"", "\x01", "\x21", "\xff", "\x00", "\x00\x00", "\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x00\x00",
		"\x00\x01\x00\x00", "\x00\x00\x00\x00\x20", "\x00\x21\x00\x00", "\x00\xff\x00\x00", // references to unseen parts
		"\x00\x00\x02\x01a\x00\x00\x00", "\x00\x00\x00\x02\x01a\x00\x00", // a key without a value, and a value without a key
		"\x00\x00\x00\x00\x00\x01\x01", "\x00\x00\x05ab", "\x00\x00\x00\x00\x00\x05ab",
	} {
		if c, ok := (&Interner{}).Read(cursorOf(bad)); ok {
			t.Errorf("%q is %v", bad, c)
		}
	}
}

func madeOf(labels, owners string) *Common {
	return (&Interner{}).Common([]byte(labels), []byte(owners))
}

func appendedLabels(i int) string {
	return string(AppendLabels(nil, labels.Set{"n": strings.Repeat("x", i)}))
}

func appendedOwner(i int) string {
	return string(AppendOwner(nil, &Owner{APIVersion: "v1", Kind: "A", Name: fmt.Sprint("a-", i), UID: fmt.Sprint(i)}))
}

func cursorOf(text string) *Cursor {
	c := NewCursor([]byte(text))
	return &c
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

// TestOverlongLengths: common reads labels and owners of any length that a file may have.
func TestOverlongLengths(t *testing.T) {
	overlong := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0} // nothing, in six bytes
	if validLabels(overlong, []byte{0}) || validLabels([]byte{0}, overlong) {
		t.Error("as the key of a label")
	}
	if validOwners(append(append([]byte{1}, overlong...), 0, 0, 0)) {
		t.Error("as the version of an owner")
	}
	if !validLabels(AppendText(nil, "a"), AppendText(nil, "b")) || !validOwners([]byte{1, 0, 0, 0, 0}) {
		t.Error("what is right is refused")
	}
}
