package cache

import (
	"encoding/binary"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// labelSet is the labels of a packed object: keys and values in the order of the keys, each
// behind its length. Equal sets are one in memory, as those of the objects of one owner mostly
// are, and go with the last object that has them. A map of three takes 336 bytes and more, and
// there are as many sets as nodes.
type labelSet struct{ text unique.Handle[string] }

var _ labels.Labels = labelSet{}

var noLabels = labelSet{unique.Make("")}

// newLabelSet is a set with the same labels, whose strings are no views.
func newLabelSet(set labels.Set) labelSet {
	if len(set) == 0 {
		return noLabels
	}
	var few [8]string // most objects have fewer, and there is one set for each that is loaded
	keys := few[:0]
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var room [256]byte
	text := room[:0]
	for _, key := range keys {
		text = appendText(appendText(text, key), set[key])
	}
	return labelSet{unique.Make(string(text))}
}

// each calls fn with the labels, in order, until it returns false.
func (l labelSet) each(fn func(key, value string) bool) {
	text := l.text.Value()
	next := func() (s string) {
		n, size := textLength(text)
		s, text = text[size:size+n], text[size+n:]
		return s
	}
	for len(text) > 0 {
		key := next()
		if !fn(key, next()) {
			return
		}
	}
}

// textLength is the length that appendText wrote before a string, and how many bytes that
// takes.
func textLength(s string) (n, size int) {
	var head [binary.MaxVarintLen32]byte
	length, size := binary.Uvarint(head[:copy(head[:], s)])
	return int(length), size
}

// Lookup finds the value of a label.
func (l labelSet) Lookup(label string) (value string, exists bool) {
	l.each(func(k, v string) bool {
		if exists = k == label; exists {
			value = v
		}
		return !exists && k < label
	})
	return value, exists
}

// Has implements labels.Labels.
func (l labelSet) Has(label string) bool { _, exists := l.Lookup(label); return exists }

// Get implements labels.Labels.
func (l labelSet) Get(label string) string { value, _ := l.Lookup(label); return value }

// set is the labels as a map, which is the caller's; nil if there are none.
func (l labelSet) set() (set labels.Set) {
	l.each(func(k, v string) bool {
		if set == nil {
			set = labels.Set{}
		}
		set[k] = v
		return true
	})
	return set
}

// labels are the labels of an item, of whatever it may lie in.
func (it *Item) labels() labels.Labels {
	if b := it.body.Load(); b.packed() {
		return b.labels
	}
	return it.Meta().Labels
}
