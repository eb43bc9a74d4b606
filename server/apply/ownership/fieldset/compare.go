package fieldset

import "reflect"

// Changes returns the paths in which b differs from a: added and changed paths are members, removed paths are not. Both are
// structs of the plan's type. The set is allocated in memory.
func (p *Plan) Changes(memory *Memory, a, b reflect.Value) (Set, error) {
	if p.root.form != formStruct {
		return nil, ErrUnsupported
	}
	c := comparer{Memory: memory}
	c.fields(p.root, value{a, present}, value{b, present})
	return c.take(0), c.err
}

// comparer is one comparison. Its methods push a branch for each path that differs onto
// the stack of its memory.
type comparer struct {
	*Memory
	err error
}

// value compares two values of one path element.
func (c *comparer) value(n *node, element string, a, b value) {
	if a.presence == absent && b.presence == absent || c.err != nil {
		return
	}
	both := a.presence == present && b.presence == present
	if both && sharesMemory(a.Value, b.Value) {
		return
	}
	mark := len(c.stack)
	state := notMember
	switch {
	case a.presence == absent:
		state = member
	case b.presence == absent:
		state = removed
	}
	switch n.form {
	case formUnsupported:
		c.err = ErrUnsupported
		return
	case formScalar, formAtomic:
		if state == notMember && (a.presence != b.presence || both && !c.equal(n, a.Value, b.Value)) {
			state = member
		}
	default:
		c.inside(n, a, b)
		// An empty value and null differ, though nothing in them does.
		if state == notMember && a.presence != b.presence && len(c.stack) == mark {
			state = member
		}
	}
	children := c.take(mark)
	if state != notMember || children != nil {
		c.stack = append(c.stack, branch{element: element, state: state, children: children})
	}
}

// inside compares the separately owned parts of two values.
func (c *comparer) inside(n *node, a, b value) {
	if a.presence != present && b.presence != present {
		return
	}
	switch n.form {
	case formStruct:
		c.fields(n, a, b)
	case formMap:
		c.entries(n, a, b)
	case formSet, formKeyed:
		c.items(n, a, b)
	}
}

// fields compares two structs.
func (c *comparer) fields(n *node, a, b value) {
	for i := range n.fields {
		f := &n.fields[i]
		fa, fb := a.field(f), b.field(f)
		if fa.presence != absent || fb.presence != absent {
			c.value(f.node, f.element, fa, fb)
		}
	}
}

// entries compares two maps.
func (c *comparer) entries(n *node, a, b value) {
	mark := len(c.stack)
	if n.plain {
		c.strings(a.stringMap(), b.stringMap())
		c.stack[mark:].sort()
		return
	}
	if b.presence == present {
		for it := b.MapRange(); it.Next(); {
			c.value(n.elem, fieldElement(it.Key().String()), a.entry(n, it.Key()), valueOf(n.elem, it.Value(), false))
		}
	}
	if a.presence == present {
		for it := a.MapRange(); it.Next(); {
			if b.entry(n, it.Key()).presence == absent {
				c.value(n.elem, fieldElement(it.Key().String()), valueOf(n.elem, it.Value(), false), value{})
			}
		}
	}
	c.stack[mark:].sort()
}

// strings compares two maps of strings.
func (c *comparer) strings(a, b map[string]string) {
	for k, vb := range b {
		if va, ok := a[k]; !ok || va != vb {
			c.stack = append(c.stack, branch{element: fieldElement(k), state: member})
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			c.stack = append(c.stack, branch{element: fieldElement(k), state: removed})
		}
	}
}

// items compares two lists of separately owned items, in any order.
func (c *comparer) items(n *node, a, b value) {
	if a.presence == present && b.presence == present && c.equalItems(n, a, b) {
		return
	}
	mark := len(c.stack)
	ea, oka := elementsOf(n, a)
	eb, okb := elementsOf(n, b)
	if !oka || !okb {
		c.err = ErrUnsupported
		return
	}
	before, after := finder{elements: ea}, finder{elements: eb}
	for i, e := range eb {
		var old value
		if j := before.findNear(i, e); j >= 0 {
			old = a.item(n, j)
		}
		c.value(n.elem, e, old, b.item(n, i))
	}
	for i, e := range ea {
		if after.findNear(i, e) < 0 {
			c.value(n.elem, e, a.item(n, i), value{})
		}
	}
	c.stack[mark:].sort()
}

// equalItems finds lists that have not changed, without spelling their elements.
func (c *comparer) equalItems(n *node, a, b value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		va, vb := a.item(n, i), b.item(n, i)
		if va.presence != present || vb.presence != present || !c.equal(n.elem, va.Value, vb.Value) {
			return false
		}
	}
	return true
}
