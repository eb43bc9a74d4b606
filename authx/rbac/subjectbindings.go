package rbac

import (
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// manyBindings is the number of bindings of one subject in one namespace up to which they are checked
// one by one. More are grouped by their roles.
const manyBindings = 16

// slot is the place of a role, which may be empty although bindings refer to it. A change of the role changes
// nothing else.
type slot struct {
	key
	role *role // nil: there is none
	uses int   // bindings that refer to it
}

// lost reports whether bindings refer to a role that does not exist.
func (s *slot) lost() bool { return s.role == nil && s.uses > 0 }

// change changes the slot of a role. r.mu is held.
func (r *Rules) change(k key, fn func(*slot)) *slot {
	s := r.slots[k]
	if s == nil {
		s = &slot{key: k}
		r.slots[k] = s
	}
	if s.lost() {
		r.lost--
	}
	before := s.role
	if fn(s); s.role != before && s.uses > 0 {
		r.changed(k.namespace)
	}
	if s.lost() {
		r.lost++
	}
	if s.role == nil && s.uses == 0 {
		delete(r.slots, k)
	}
	return s
}

// changed has signatures made again in which a role of a namespace may be, "" for cluster roles. r.mu is held.
func (r *Rules) changed(namespace string) {
	if namespace == "" {
		r.generation++
	} else if i := r.found[namespace]; i != nil {
		i.generation++
	}
}

// subjectBindings are the bindings of one namespace that name one subject.
type subjectBindings struct {
	few    []*binding    // in order of name; unused once there are many
	grants []*grant      // many bindings by role, in no order; nil: there are few
	at     map[*slot]int // positions in grants
	about  atomic.Pointer[signatures]
}

// signatures are those of the roles of grants at a generation of the rules, bit by bit: a decision reads the few bits of
// all roles that its request may need.
type signatures struct {
	generation uint64
	words      int      // of a row
	rows       []uint64 // of each bit, in turn: that of 64 roles in a word
}

// grant is a role and the bindings that refer to it, in order of name.
type grant struct {
	slot     *slot
	bindings []*binding
}

// each calls fn with each role and the first binding that refers to it, until fn returns false. It reports
// whether fn never did. Few bindings are not grouped, so their roles may repeat.
func (h *subjectBindings) each(fn func(*slot, *binding) bool) bool {
	for _, b := range h.few {
		if !fn(b.slot, b) {
			return false
		}
	}
	for _, g := range h.grants {
		if !fn(g.slot, g.bindings[0]) {
			return false
		}
	}
	return true
}

// find returns a binding that allows a request; nil: none does. A nil subjectBindings is empty.
func (h *subjectBindings) find(q *hashedRequest, generation uint64) *binding {
	if h == nil {
		return nil
	}
	for _, b := range h.few {
		if b.slot.role.allows(q) {
			return b
		}
	}
	if len(h.grants) <= manyBindings {
		for _, g := range h.grants {
			if g.slot.role.allows(q) {
				return g.bindings[0]
			}
		}
		return nil
	}
	q.keys()
	about := h.signatures(generation)
	for at := range about.words {
		may := uint64(0)
		for _, hash := range q.hashes[:q.n] {
			may |= about.rows[int(hash%signatureBits)*about.words+at]
		}
		for ; may != 0; may &= may - 1 {
			if g := h.grants[at*64+bits.TrailingZeros64(may)]; g.slot.role.allows(q) {
				return g.bindings[0]
			}
		}
	}
	return nil
}

// signatures returns those of the roles of grants. They are made again after a change.
func (h *subjectBindings) signatures(generation uint64) *signatures {
	if known := h.about.Load(); known != nil && known.generation == generation {
		return known
	}
	words := (len(h.grants) + 63) / 64
	made := &signatures{generation, words, make([]uint64, signatureBits*words)}
	for i, g := range h.grants {
		if g.slot.role == nil {
			continue
		}
		for at, word := range g.slot.role.about {
			for ; word != 0; word &= word - 1 {
				made.rows[(at*64+bits.TrailingZeros64(word))*words+i/64] |= 1 << (i % 64)
			}
		}
	}
	h.about.Store(made)
	return made
}

func (h *subjectBindings) insert(b *binding) {
	if h.grants != nil {
		h.grant(b)
		return
	}
	if h.few = inserted(h.few, b); len(h.few) <= manyBindings {
		return
	}
	h.at = map[*slot]int{}
	for _, b := range h.few {
		h.grant(b)
	}
	h.few = nil
}

// grant adds one of many bindings.
func (h *subjectBindings) grant(b *binding) {
	at, ok := h.at[b.slot]
	if !ok {
		at = len(h.grants)
		h.about.Store(nil)
		h.at[b.slot] = at
		h.grants = append(h.grants, &grant{slot: b.slot})
	}
	g := h.grants[at]
	g.bindings = inserted(g.bindings, b)
}

func (h *subjectBindings) remove(b *binding) {
	if h.grants == nil {
		h.few = removed(h.few, b)
		return
	}
	at, ok := h.at[b.slot]
	if !ok {
		return
	}
	g := h.grants[at]
	if g.bindings = removed(g.bindings, b); len(g.bindings) > 0 {
		return
	}
	h.about.Store(nil)
	delete(h.at, b.slot)
	last := len(h.grants) - 1
	if at != last {
		h.grants[at] = h.grants[last]
		h.at[h.grants[at].slot] = at
	}
	h.grants[last] = nil
	h.grants = h.grants[:last]
}

func inserted(list []*binding, b *binding) []*binding {
	at, _ := slices.BinarySearchFunc(list, b.name, byName)
	return slices.Insert(list, at, b)
}

func removed(list []*binding, b *binding) []*binding {
	if at, there := slices.BinarySearchFunc(list, b.name, byName); there {
		return slices.Delete(list, at, at+1)
	}
	return list
}

func byName(b *binding, name string) int { return strings.Compare(b.name, name) }
