package apply

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// branch is one path element of a set of paths, with what is below it. Elements are
// spelled as in FieldsV1 and escaped for JSON: `f:spec`, `k:{\"name\":\"web\"}`.
// Branches side by side are sorted by element.
type branch struct {
	element string
	state   pathState
	kids    []branch
}

type pathState uint8

const (
	pathNone pathState = iota // not in the set itself
	pathGone                  // in a comparison: the new object lacks it
	pathSet                   // a member; in a comparison: added or modified
)

// errOther says that only the merge library can handle a value: duplicates in
// associative lists, missing keys, odd key characters, untyped trees.
var errOther = errors.New("value needs the merge library")

// scratch is the memory that branches are built in. Branches live until it is
// reused, so they must not leave the call that took it.
type scratch struct {
	stack []branch
	arena []branch
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// release forgets all branches and gives the memory back.
func (s *scratch) release() {
	clear(s.stack[:cap(s.stack)])
	clear(s.arena[:cap(s.arena)])
	s.stack, s.arena = s.stack[:0], s.arena[:0]
	if cap(s.arena) <= 1<<10 {
		scratches.Put(s)
	}
}

// comparer finds the paths in which two objects of a type differ.
type comparer struct {
	*scratch
	err error
}

// presence is whether a JSON value is there.
type presence uint8

const (
	absent presence = iota
	null
	present
)

// changes returns the paths in which b differs from a, both structs.
func (c *comparer) changes(n *node, a, b reflect.Value) ([]branch, error) {
	c.fields(n, a, present, b, present)
	return c.take(0), c.err
}

// take moves the branches pushed since mark to the arena.
func (s *scratch) take(mark int) []branch {
	if len(s.stack) == mark {
		return nil
	}
	kids := s.stack[mark:]
	if cap(s.arena)-len(s.arena) < len(kids) {
		// Branches in the old arena keep it alive as long as they need it.
		s.arena = make([]branch, 0, max(64, 2*cap(s.arena), 2*len(kids)))
	}
	start := len(s.arena)
	s.arena = append(s.arena, kids...)
	s.stack = s.stack[:mark]
	return s.arena[start:len(s.arena):len(s.arena)]
}

// resolve looks through pointers and tells whether a field's value is there.
func resolve(n *node, v reflect.Value, omitEmpty bool) (reflect.Value, presence) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v, missing(omitEmpty)
		}
		// A pointer to an empty value is not omitted.
		v, omitEmpty = v.Elem(), false
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		if omitEmpty && v.Len() == 0 {
			return v, absent
		}
		if v.IsNil() {
			return v, null
		}
	case reflect.Struct:
		if n.self != selfNone && encodesNull(n, v) {
			return v, null
		}
	default:
		if omitEmpty && v.IsZero() {
			return v, absent
		}
	}
	return v, present
}

func missing(omitEmpty bool) presence {
	if omitEmpty {
		return absent
	}
	return null
}

func encodesNull(n *node, v reflect.Value) bool {
	switch n.self {
	case selfTime:
		return addressed[metav1.Time](v).IsZero()
	case selfMicroTime:
		return addressed[metav1.MicroTime](v).IsZero()
	case selfRaw:
		raw, ok := rawBytes(v)
		return ok && len(raw) == 0
	}
	return false
}

// addressed is a pointer to v's value, to a copy if it cannot be taken.
func addressed[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	t := v.Interface().(T)
	return &t
}

func rawBytes(v reflect.Value) ([]byte, bool) {
	if v.Type() == reflect.TypeFor[runtime.RawExtension]() {
		r := addressed[runtime.RawExtension](v)
		return r.Raw, r.Object == nil
	}
	return nil, false
}

// value compares one value and pushes what differs under element.
func (c *comparer) value(n *node, element string, a reflect.Value, pa presence, b reflect.Value, pb presence) {
	if pa == absent && pb == absent || c.err != nil {
		return
	}
	if pa == present && pb == present && identical(a, b) {
		return
	}
	mark := len(c.stack)
	state := pathNone
	switch {
	case pa == absent:
		state = pathSet
	case pb == absent:
		state = pathGone
	}
	switch n.form {
	case formScalar, formAtomic:
		if state == pathNone && (pa != pb || pa == present && !c.same(n, a, b)) {
			state = pathSet
		}
	case formOther:
		c.err = errOther
		return
	default:
		if pa != present && pb != present {
			if pa != pb && state == pathNone {
				state = pathSet
			}
			break
		}
		c.children(n, a, pa, b, pb)
		// An empty value and null differ, though nothing below them does.
		if state == pathNone && pa != pb && len(c.stack) == mark {
			state = pathSet
		}
	}
	kids := c.take(mark)
	if state != pathNone || kids != nil {
		c.stack = append(c.stack, branch{element, state, kids})
	}
}

func (c *comparer) children(n *node, a reflect.Value, pa presence, b reflect.Value, pb presence) {
	switch n.form {
	case formStruct:
		c.fields(n, a, pa, b, pb)
	case formMap:
		c.entries(n, a, pa, b, pb)
	case formSet, formKeyed:
		c.items(n, a, pa, b, pb)
	}
}

func (c *comparer) fields(n *node, a reflect.Value, pa presence, b reflect.Value, pb presence) {
	for i := range n.fields {
		f := &n.fields[i]
		var fa, fb reflect.Value
		var qa, qb presence
		if pa == present {
			fa, qa = resolve(f.node, at(a, f.index), f.omitEmpty)
		}
		if pb == present {
			fb, qb = resolve(f.node, at(b, f.index), f.omitEmpty)
		}
		if qa != absent || qb != absent {
			c.value(f.node, f.element, fa, qa, fb, qb)
		}
	}
}

// entries compares two maps.
func (c *comparer) entries(n *node, a reflect.Value, pa presence, b reflect.Value, pb presence) {
	if n.plain {
		c.plainEntries(stringMap(a, pa), stringMap(b, pb))
		return
	}
	mark := len(c.stack)
	if pb == present {
		for it := b.MapRange(); it.Next(); {
			va, qa := lookup(n, a, pa, it.Key())
			vb, qb := resolve(n.elem, it.Value(), false)
			c.value(n.elem, fieldElement(it.Key().String()), va, qa, vb, qb)
		}
	}
	if pa == present {
		for it := a.MapRange(); it.Next(); {
			if _, qb := lookup(n, b, pb, it.Key()); qb == absent {
				va, qa := resolve(n.elem, it.Value(), false)
				c.value(n.elem, fieldElement(it.Key().String()), va, qa, reflect.Value{}, absent)
			}
		}
	}
	sortBranches(c.stack[mark:])
}

func lookup(n *node, m reflect.Value, p presence, key reflect.Value) (reflect.Value, presence) {
	if p != present {
		return reflect.Value{}, absent
	}
	v := m.MapIndex(key)
	if !v.IsValid() {
		return v, absent
	}
	return resolve(n.elem, v, false)
}

// stringMap reads a map of any string types.
func stringMap(v reflect.Value, p presence) map[string]string {
	if p != present {
		return nil
	}
	if v.CanAddr() {
		return *(*map[string]string)(v.Addr().UnsafePointer())
	}
	out := make(map[string]string, v.Len())
	for it := v.MapRange(); it.Next(); {
		out[it.Key().String()] = it.Value().String()
	}
	return out
}

func (c *comparer) plainEntries(a, b map[string]string) {
	mark := len(c.stack)
	for k, vb := range b {
		if va, ok := a[k]; !ok || va != vb {
			c.stack = append(c.stack, branch{element: fieldElement(k), state: pathSet})
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			c.stack = append(c.stack, branch{element: fieldElement(k), state: pathGone})
		}
	}
	sortBranches(c.stack[mark:])
}

// items compares two associative lists, whatever their order.
func (c *comparer) items(n *node, a reflect.Value, pa presence, b reflect.Value, pb presence) {
	if pa == present && pb == present && c.sameItems(n, a, b) {
		return
	}
	mark := len(c.stack)
	ea, oka := c.elements(n, a, pa)
	eb, okb := c.elements(n, b, pb)
	if !oka || !okb {
		c.err = errOther
		return
	}
	before, after := finder{elements: ea}, finder{elements: eb}
	for i, e := range eb {
		vb, qb := resolve(n.elem, b.Index(i), false)
		// Items seldom move.
		j := i
		if j >= len(ea) || ea[j] != e {
			j = before.find(e)
		}
		if j < 0 {
			c.value(n.elem, e, reflect.Value{}, absent, vb, qb)
			continue
		}
		va, qa := resolve(n.elem, a.Index(j), false)
		c.value(n.elem, e, va, qa, vb, qb)
	}
	for i, e := range ea {
		if (i >= len(eb) || eb[i] != e) && after.find(e) < 0 {
			va, qa := resolve(n.elem, a.Index(i), false)
			c.value(n.elem, e, va, qa, reflect.Value{}, absent)
		}
	}
	sortBranches(c.stack[mark:])
}

// sameItems finds the lists that have not changed, without spelling their elements.
func (c *comparer) sameItems(n *node, a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		va, qa := resolve(n.elem, a.Index(i), false)
		vb, qb := resolve(n.elem, b.Index(i), false)
		if qa != present || qb != present || !c.same(n.elem, va, vb) {
			return false
		}
	}
	return true
}

func sortBranches(list []branch) {
	if len(list) > 1 {
		slices.SortFunc(list, func(x, y branch) int { return strings.Compare(x.element, y.element) })
	}
}
