package packing

import (
	"encoding/binary"
	"slices"
)

// Record appends the labels and owners of a packed object relative to the objects before it: the number of an equal Common, or
// 0 and both parts, each as the number of a Common that has it, or 0 and its texts. A reader that has seen the same objects
// needs no comparison.
func (n *Interner) Record(dst []byte, c *Common) []byte {
	at, t := 0, c.texts()
	if c != nil {
		if same, _ := n.find(&t); same != nil {
			c = same
		}
		at = slices.Index(n.seen[:], c) + 1
	}
	if dst = append(dst, byte(at)); at > 0 {
		return dst
	}
	number := func(has bool, same func(u common) bool) (known bool) {
		at := 0
		if has {
			at = slices.IndexFunc(n.seen[:], func(c *Common) bool { return c != nil && same(c.texts()) }) + 1
		}
		dst = append(dst, byte(at))
		return at > 0
	}
	if !number(t.keys != "", func(u common) bool { return u.sameLabels(&t) }) {
		dst = AppendText(AppendText(dst, t.keys), t.values)
	}
	if !number(t.owners != "", func(u common) bool { return u.owners == t.owners }) {
		dst = AppendText(dst, t.owners)
	}
	if t != (common{}) {
		n.Add(c)
	}
	return dst
}

// Read reads what Record wrote. It returns false if the bytes are invalid.
func (n *Interner) Read(from *Cursor) (c *Common, ok bool) {
	if c, ok = n.number(from); c != nil || !ok {
		return c, ok
	}
	var made Common
	switch c, ok := n.number(from); {
	case !ok:
		return nil, false
	case c != nil:
		made.keys, made.values = c.keys, c.values
	default:
		keys, values := from.Bytes(), from.Bytes()
		if from.Bad || !validLabels(keys, values) {
			return nil, false
		}
		n.label(&made, keys, n.text(values))
	}
	switch c, ok := n.number(from); {
	case !ok:
		return nil, false
	case c != nil:
		made.owners = c.owners
	default:
		owners := from.Bytes()
		if from.Bad || !validOwners(owners) {
			return nil, false
		}
		made.owners = n.text(owners)
	}
	if made == (Common{}) {
		return nil, true
	}
	c = &made
	n.Add(c)
	return c, true
}

// textsSize is about how many bytes of texts at most share memory, which lives as long as one of them: a size class of the allocator.
const textsSize = 2 << 10

// text is textFor for one of many texts.
func (n *Interner) text(text []byte) *byte {
	if len(text) == 0 {
		return nil
	}
	if need := len(text) + binary.MaxVarintLen32; need > cap(n.texts)-len(n.texts) {
		n.texts = make([]byte, 0, max(need, min(2*cap(n.texts), textsSize)))
	}
	at := len(n.texts)
	n.texts = AppendText(n.texts, View(text))
	return &n.texts[at]
}

// number reads the number of a Common that was seen, or 0.
func (n *Interner) number(from *Cursor) (c *Common, ok bool) {
	at := int(from.Byte())
	if at > internerSize {
		return nil, false
	}
	if at > 0 {
		c = n.seen[at-1]
	}
	return c, at == 0 || c != nil
}

// validLabels reports whether two texts are the keys and values of labels.
func validLabels(keys, values []byte) bool {
	k, v := NewCursor(keys), NewCursor(values)
	for k.Left() > 0 {
		k.Bytes()
		v.Bytes()
	}
	return !k.Bad && !v.Bad && v.Left() == 0
}

// validOwners reports whether a text is the owners of a Common.
func validOwners(text []byte) bool {
	c := NewCursor(text)
	for c.Left() > 0 {
		c.Byte()
		for range 4 {
			c.Bytes()
		}
	}
	return !c.Bad
}
