package packing

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unique"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
)

// Common is the labels and owner references of a packed object, which neighbors in key order mostly share. nil means neither. A
// map of three labels would take at least 336 bytes for each object; this takes 24, and memory for what differs from others:
// all objects whose labels have equal keys share these.
//
// Keys and values are in the order of keys. owners has for each reference whether it blocks, its API version, kind, name and
// UID. Each string follows its length.
type Common struct {
	keys   unique.Handle[string] // of the labels; zero: there are none
	values *byte                 // as TextAt reads it, or nil
	owners *byte                 // the same
}

var _ labels.Labels = (*Common)(nil)

// common is the texts of a Common.
type common struct{ keys, values, owners string }

func (c *Common) texts() (t common) {
	if c != nil && c.values != nil {
		t.keys, t.values = c.keys.Value(), textOf(c.values)
	}
	t.owners = c.Owners()
	return t
}

func (t *common) sameLabels(u *common) bool { return t.values == u.values && t.keys == u.keys }

// textOf returns the text that TextAt reads; "" if there is none.
func textOf(p *byte) string {
	if p == nil {
		return ""
	}
	text, _ := TextAt(p, 0)
	return text
}

// textFor returns a text for textOf; nil for an empty one.
func textFor(text []byte) *byte {
	if len(text) == 0 {
		return nil
	}
	return unsafe.SliceData(AppendText(make([]byte, 0, len(text)+binary.MaxVarintLen16), View(text)))
}

// Owners returns the references as AppendOwner wrote them.
func (c *Common) Owners() string {
	if c == nil {
		return ""
	}
	return textOf(c.owners)
}

// SameLabels reports whether two have the same labels: a label selector selects both or neither.
func SameLabels(a, b *Common) bool {
	if a == b {
		return true
	}
	t, u := a.texts(), b.texts()
	return t.sameLabels(&u)
}

// internerSize is the number of earlier objects that an object is compared with. It allows that many Pods of one owner to
// differ in one label.
const internerSize = 32

// Interner holds the labels and owners of the last objects of a loop over many objects, mostly in key order, so that equal ones
// share memory.
type Interner struct {
	seen [internerSize]*Common
	next int
	keys unique.Handle[string] // of the labels that were made last

	split [2][]byte // room for keys and values
	texts []byte    // memory of texts that Read made, with room for more
}

// Add adds the labels and owners of a packed object.
func (n *Interner) Add(c *Common) {
	if c == nil || slices.Contains(n.seen[:], c) {
		return
	}
	n.seen[n.next] = c
	n.next = (n.next + 1) % internerSize
}

// find returns an equal Common, or else equal parts.
func (n *Interner) find(t *common) (same *Common, parts Common) {
	for i := range n.seen {
		c := n.seen[(n.next+internerSize-1-i)%internerSize] // the latest first
		if c == nil {
			break
		}
		u := c.texts()
		if u.sameLabels(t) {
			parts.keys, parts.values = c.keys, c.values
			if u.owners == t.owners {
				return c, *c
			}
		}
		if u.owners == t.owners {
			parts.owners = c.owners
		}
	}
	return nil, parts
}

// label sets the labels of a Common; values are as textFor returns them.
func (n *Interner) label(c *Common, keys []byte, values *byte) {
	if len(keys) == 0 {
		return
	}
	if n.keys == (unique.Handle[string]{}) || n.keys.Value() != View(keys) {
		n.keys = unique.Make(string(keys))
	}
	c.keys, c.values = n.keys, values
}

// Common returns an equal Common of what AppendLabels and AppendOwner wrote, or makes one of equal parts. It keeps no view of its
// arguments.
func (n *Interner) Common(labels, owners []byte) *Common {
	if len(labels) == 0 && len(owners) == 0 {
		return nil
	}
	keys, values := n.split[0][:0], n.split[1][:0]
	for left := commonReader(View(labels)); len(left) > 0; {
		keys = AppendText(keys, left.next())
		values = AppendText(values, left.next())
	}
	n.split = [2][]byte{keys, values}
	same, made := n.find(&common{View(keys), View(values), View(owners)})
	if same != nil {
		return same
	}
	if made.values == nil {
		n.label(&made, keys, textFor(values))
	}
	if made.owners == nil {
		made.owners = textFor(owners)
	}
	n.Add(&made)
	return &made
}

// Intern returns a Common equal to c that was seen before, or else c with equal parts replaced.
func (n *Interner) Intern(c *Common) *Common {
	if c == nil || slices.Contains(n.seen[:], c) {
		return c
	}
	t := c.texts()
	same, made := n.find(&t)
	if same != nil {
		return same
	}
	if made.values != nil || made.owners != nil {
		c = &Common{c.keys, cmp.Or(made.values, c.values), cmp.Or(made.owners, c.owners)}
	}
	n.Add(c)
	return c
}

// AppendLabels appends labels, each key before its value.
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
	t := c.texts()
	values := commonReader(t.values)
	for keys := commonReader(t.keys); len(keys) > 0; {
		if !fn(keys.next(), values.next()) {
			return
		}
	}
}

// Refs appends the references.
func (c *Common) Refs(dst []Owner) []Owner {
	if c == nil {
		return dst
	}
	for left := commonReader(c.Owners()); len(left) > 0; {
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

// Owner is one of an object's references to owners. Its strings may be views of memory that never changes.
type Owner struct {
	APIVersion, Kind, Name, UID string

	Blocks bool   // the owner's deletion in the foreground waits for the object
	JSON   []byte // as in the object, if wanted
}

// AppendOwner appends a reference in the form of Common.owners.
func AppendOwner(dst []byte, o *Owner) []byte {
	blocks := byte(0)
	if o.Blocks {
		blocks = 1
	}
	dst = AppendText(AppendText(append(dst, blocks), o.APIVersion), o.Kind)
	return AppendText(AppendText(dst, o.Name), o.UID)
}
