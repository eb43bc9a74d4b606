package cache

import (
	"cmp"
	"encoding/binary"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// common is what a packed object mostly has in common with its neighbours in the order of keys:
// its labels and its references to owners. nil is neither. A map of three labels takes 336 bytes
// and more, and there are as many as nodes.
//
// Labels are their keys and values in the order of the keys; owners are of each reference whether
// it blocks, its version, kind, name and UID. Each string stands behind its length.
type common struct{ labels, owners string }

var _ labels.Labels = (*common)(nil)

// mostNear is how many others an object's labels and owners are compared with. As many Pods of one
// owner may differ in one label.
const mostNear = 32

// near is what objects have that were looked at last, so that equal ones share it. It is for who
// goes through many objects, mostly in the order of keys, and holds nothing once that is over.
type near struct {
	seen [mostNear]*common
	next int
}

// see takes what a packed object has.
func (n *near) see(c *common) {
	if c == nil || slices.Contains(n.seen[:], c) {
		return
	}
	n.seen[n.next] = c
	n.next = (n.next + 1) % mostNear
}

// find finds what is equal, or else the parts that are.
func (n *near) find(labels, owners string) (same *common, parts common) {
	for i := range n.seen {
		c := n.seen[(n.next+mostNear-1-i)%mostNear] // the last first
		if c == nil {
			break
		}
		if c.labels == labels {
			parts.labels = c.labels
			if c.owners == owners {
				return c, *c
			}
		}
		if c.owners == owners {
			parts.owners = c.owners
		}
	}
	return nil, parts
}

// common finds what is equal, or makes it of the parts that are. Nothing is a view of what it is given.
func (n *near) common(labels, owners []byte) *common {
	if len(labels) == 0 && len(owners) == 0 {
		return nil
	}
	same, made := n.find(view(labels), view(owners))
	if same != nil {
		return same
	}
	if made.labels == "" {
		made.labels = string(labels)
	}
	if made.owners == "" {
		made.owners = string(owners)
	}
	n.see(&made)
	return &made
}

// shared is what is equal to c among what was seen, or else c with the parts that are.
func (n *near) shared(c *common) *common {
	if c == nil || slices.Contains(n.seen[:], c) {
		return c
	}
	same, made := n.find(c.labels, c.owners)
	if same != nil {
		return same
	}
	if made.labels != "" || made.owners != "" {
		c = &common{cmp.Or(made.labels, c.labels), cmp.Or(made.owners, c.owners)}
	}
	n.see(c)
	return c
}

// appendLabels appends labels as common has them.
func appendLabels(dst []byte, set labels.Set) []byte {
	var few [8]string // most objects have fewer, and there is one set for each that is loaded
	keys := few[:0]
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		dst = appendText(appendText(dst, key), set[key])
	}
	return dst
}

// each calls fn with the labels, in order, until it returns false.
func (c *common) each(fn func(key, value string) bool) {
	if c == nil {
		return
	}
	for left := commonReader(c.labels); len(left) > 0; {
		key := left.next()
		if !fn(key, left.next()) {
			return
		}
	}
}

// refs appends the references.
func (c *common) refs(dst []Owner) []Owner {
	if c == nil {
		return dst
	}
	for left := commonReader(c.owners); len(left) > 0; {
		o := Owner{Blocks: left[0] == 1}
		left = left[1:]
		o.APIVersion, o.Kind = left.next(), left.next()
		o.Name, o.UID = left.next(), left.next()
		dst = append(dst, o)
	}
	return dst
}

// commonReader reads the texts of a common.
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
func (c *common) Lookup(label string) (value string, exists bool) {
	c.each(func(k, v string) bool {
		if exists = k == label; exists {
			value = v
		}
		return !exists && k < label
	})
	return value, exists
}

// Has implements labels.Labels.
func (c *common) Has(label string) bool { _, exists := c.Lookup(label); return exists }

// Get implements labels.Labels.
func (c *common) Get(label string) string { value, _ := c.Lookup(label); return value }

// set is the labels as a map, which is the caller's; nil if there are none.
func (c *common) set() (set labels.Set) {
	c.each(func(k, v string) bool {
		if set == nil {
			set = labels.Set{}
		}
		set[k] = v
		return true
	})
	return set
}

// text is what selectors of labels depend on: equal ones select the same.
func (c *common) text() string {
	if c == nil {
		return ""
	}
	return c.labels
}

// labels are the labels of an item, of whatever it may lie in.
func (it *Item) labels() labels.Labels {
	if b := it.body.Load(); b.packed() {
		return b.common
	}
	return it.Meta().Labels
}
