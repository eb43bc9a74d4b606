package packing

import (
	"cmp"
	"encoding/binary"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Common is what a packed object mostly has in common with its neighbours in the order of keys:
// its labels and its references to owners. nil is neither. A map of three labels takes 336 bytes
// and more, and there are as many as nodes.
//
// Labels are their keys and values in the order of the keys; owners are of each reference whether
// it blocks, its version, kind, name and UID. Each string stands behind its length.
type Common struct{ Labels, Owners string }

var _ labels.Labels = (*Common)(nil)

// mostNeighbors is how many others an object's labels and owners are compared with. As many Pods of one
// owner may differ in one label.
const mostNeighbors = 32

// Neighbors are what the last objects had, so that equal ones share it. They are for a loop over
// many objects, mostly in the order of keys, and hold nothing once that is over.
type Neighbors struct {
	seen [mostNeighbors]*Common
	next int
}

// See takes what a packed object has.
func (n *Neighbors) See(c *Common) {
	if c == nil || slices.Contains(n.seen[:], c) {
		return
	}
	n.seen[n.next] = c
	n.next = (n.next + 1) % mostNeighbors
}

// find finds what is equal, or else the parts that are.
func (n *Neighbors) find(labels, owners string) (same *Common, parts Common) {
	for i := range n.seen {
		c := n.seen[(n.next+mostNeighbors-1-i)%mostNeighbors] // the last first
		if c == nil {
			break
		}
		if c.Labels == labels {
			parts.Labels = c.Labels
			if c.Owners == owners {
				return c, *c
			}
		}
		if c.Owners == owners {
			parts.Owners = c.Owners
		}
	}
	return nil, parts
}

// Common finds what is equal, or makes it of the parts that are. Nothing is a view of what it is given.
func (n *Neighbors) Common(labels, owners []byte) *Common {
	if len(labels) == 0 && len(owners) == 0 {
		return nil
	}
	same, made := n.find(View(labels), View(owners))
	if same != nil {
		return same
	}
	if made.Labels == "" {
		made.Labels = string(labels)
	}
	if made.Owners == "" {
		made.Owners = string(owners)
	}
	n.See(&made)
	return &made
}

// Shared is what is equal to c among what was seen, or else c with the parts that are.
func (n *Neighbors) Shared(c *Common) *Common {
	if c == nil || slices.Contains(n.seen[:], c) {
		return c
	}
	same, made := n.find(c.Labels, c.Owners)
	if same != nil {
		return same
	}
	if made.Labels != "" || made.Owners != "" {
		c = &Common{cmp.Or(made.Labels, c.Labels), cmp.Or(made.Owners, c.Owners)}
	}
	n.See(c)
	return c
}

// AppendLabels appends labels as common has them.
func AppendLabels(dst []byte, set labels.Set) []byte {
	var few [8]string // most objects have fewer, and there is one set for each that is loaded
	keys := few[:0]
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		dst = AppendText(AppendText(dst, key), set[key])
	}
	return dst
}

// Each calls fn with the labels, in order, until it returns false.
func (c *Common) Each(fn func(key, value string) bool) {
	if c == nil {
		return
	}
	for left := commonReader(c.Labels); len(left) > 0; {
		key := left.next()
		if !fn(key, left.next()) {
			return
		}
	}
}

// Refs appends the references.
func (c *Common) Refs(dst []Owner) []Owner {
	if c == nil {
		return dst
	}
	for left := commonReader(c.Owners); len(left) > 0; {
		o := Owner{Blocks: left[0] == 1}
		left = left[1:]
		o.APIVersion, o.Kind = left.next(), left.next()
		o.Name, o.UID = left.next(), left.next()
		dst = append(dst, o)
	}
	return dst
}

// commonReader reads the texts of a Common.
type commonReader string

// length reads what AppendText wrote before a string.
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
func (c *Common) Lookup(label string) (value string, exists bool) {
	c.Each(func(k, v string) bool {
		if exists = k == label; exists {
			value = v
		}
		return !exists && k < label
	})
	return value, exists
}

// Has implements labels.Labels.
func (c *Common) Has(label string) bool { _, exists := c.Lookup(label); return exists }

// Get implements labels.Labels.
func (c *Common) Get(label string) string { value, _ := c.Lookup(label); return value }

// Set is the labels as a map, which is the caller's; nil if there are none.
func (c *Common) Set() (set labels.Set) {
	c.Each(func(k, v string) bool {
		if set == nil {
			set = labels.Set{}
		}
		set[k] = v
		return true
	})
	return set
}

// Text is what selectors of labels depend on: equal ones select the same.
func (c *Common) Text() string {
	if c == nil {
		return ""
	}
	return c.Labels
}

// Owner is one of an object's references to owners. Its strings may be views of memory that
// never changes.
type Owner struct {
	APIVersion, Kind, Name, UID string

	Blocks bool   // the owner's deletion in the foreground waits for the object
	JSON   []byte // as it stands in the object, where that was asked for
}

// AppendOwner appends a reference as Common has it.
func AppendOwner(dst []byte, o *Owner) []byte {
	blocks := byte(0)
	if o.Blocks {
		blocks = 1
	}
	dst = AppendText(AppendText(append(dst, blocks), o.APIVersion), o.Kind)
	return AppendText(AppendText(dst, o.Name), o.UID)
}
