package cache

import (
	"encoding/binary"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// common is what a packed object mostly has in common with others of the same owner: its labels
// and its references to owners. Equal ones are one in memory, and go with the last object that has
// them. A map of three labels takes 336 bytes and more, and there are as many as nodes.
//
// The text is the length of the labels; their keys and values in the order of the keys; and of
// each reference whether it blocks, its version, kind, name and UID. Each string stands behind
// its length. Without labels and references the text is empty.
type common struct{ text unique.Handle[string] }

var _ labels.Labels = common{}

var nothing = common{unique.Make("")}

// newCommon keeps labels, of which nothing is a view then, and what keptOwners made.
func newCommon(set labels.Set, owners []byte) common {
	if len(set) == 0 && len(owners) == 0 {
		return nothing
	}
	var few [8]string // most objects have fewer, and there is one set for each that is loaded
	keys := few[:0]
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var room [512]byte
	const head = binary.MaxVarintLen32
	text := room[:head]
	for _, key := range keys {
		text = appendText(appendText(text, key), set[key])
	}
	var length [head]byte
	n := binary.PutUvarint(length[:], uint64(len(text)-head))
	copy(text[head-n:], length[:n])
	return common{unique.Make(string(append(text, owners...)[head-n:]))}
}

// parts are the labels and the references.
func (c common) parts() (labels, owners commonReader) {
	text := commonReader(c.text.Value())
	if text == "" {
		return "", ""
	}
	n := text.length()
	return text[:n], text[n:]
}

// each calls fn with the labels, in order, until it returns false.
func (c common) each(fn func(key, value string) bool) {
	for left, _ := c.parts(); len(left) > 0; {
		key := left.next()
		if !fn(key, left.next()) {
			return
		}
	}
}

// owners appends the references.
func (c common) owners(dst []Owner) []Owner {
	for _, left := c.parts(); len(left) > 0; {
		o := Owner{Blocks: left[0] == 1}
		left = left[1:]
		o.APIVersion, o.Kind = left.next(), left.next()
		o.Name, o.UID = left.next(), left.next()
		dst = append(dst, o)
	}
	return dst
}

// commonReader reads the text of a common.
type commonReader string

// length reads what appendText wrote before a string.
func (r *commonReader) length() int {
	var head [binary.MaxVarintLen32]byte
	n, size := binary.Uvarint(head[:copy(head[:], *r)])
	*r = (*r)[size:]
	return int(n)
}

func (r *commonReader) next() (s string) {
	n := r.length()
	s, *r = string((*r)[:n]), (*r)[n:]
	return s
}

// Lookup finds the value of a label.
func (c common) Lookup(label string) (value string, exists bool) {
	c.each(func(k, v string) bool {
		if exists = k == label; exists {
			value = v
		}
		return !exists && k < label
	})
	return value, exists
}

// Has implements labels.Labels.
func (c common) Has(label string) bool { _, exists := c.Lookup(label); return exists }

// Get implements labels.Labels.
func (c common) Get(label string) string { value, _ := c.Lookup(label); return value }

// set is the labels as a map, which is the caller's; nil if there are none.
func (c common) set() (set labels.Set) {
	c.each(func(k, v string) bool {
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
		return b.common
	}
	return it.Meta().Labels
}
