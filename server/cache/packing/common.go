package packing

import (
	"cmp"
	"encoding/binary"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Common is the labels and owner references of a packed object, which neighbors in key order mostly share. nil means neither. A
// map of three labels would take at least 336 bytes for each object.
//
// Labels holds keys and values in the order of keys; Owners holds for each reference whether it blocks, its API version, kind,
// name and UID. Each string follows its length.
type Common struct{ Labels, Owners string }

var _ labels.Labels = (*Common)(nil)

// mostNeighbors is the number of earlier objects that an object is compared with: so many Pods of one owner may differ in one
// label.
const mostNeighbors = 32

// Neighbors are the labels and owners of the last objects of a loop over many objects, mostly in key order, so that equal ones
// share memory.
type Neighbors struct {
	seen [mostNeighbors]*Common
	next int
}

// See adds the labels and owners of a packed object.
func (n *Neighbors) See(c *Common) {
	if c == nil || slices.Contains(n.seen[:], c) {
		return
	}
	n.seen[n.next] = c
	n.next = (n.next + 1) % mostNeighbors
}

// find returns an equal Common, or else equal parts.
func (n *Neighbors) find(labels, owners string) (same *Common, parts Common) {
	for i := range n.seen {
		c := n.seen[(n.next+mostNeighbors-1-i)%mostNeighbors] // the latest first
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

// Common returns an equal Common, or makes one of equal parts. It keeps no view of its arguments.
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

// Shared returns a Common equal to c that was seen before, or else c with equal parts replaced.
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

// AppendLabels appends labels in the form of Common.Labels.
func AppendLabels(dst []byte, set labels.Set) []byte {
	var few [8]string // most objects have fewer, and a load calls this for each
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

// Set returns the labels as a new map; nil if there are none.
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

// Text identifies the labels: a label selector selects all or none of the objects with equal texts.
func (c *Common) Text() string {
	if c == nil {
		return ""
	}
	return c.Labels
}

// Owner is one of an object's references to owners. Its strings may be views of memory that never changes.
type Owner struct {
	APIVersion, Kind, Name, UID string

	Blocks bool   // the owner's deletion in the foreground waits for the object
	JSON   []byte // as in the object, if wanted
}

// AppendOwner appends a reference in the form of Common.Owners.
func AppendOwner(dst []byte, o *Owner) []byte {
	blocks := byte(0)
	if o.Blocks {
		blocks = 1
	}
	dst = AppendText(AppendText(append(dst, blocks), o.APIVersion), o.Kind)
	return AppendText(AppendText(dst, o.Name), o.UID)
}
