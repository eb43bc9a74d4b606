package apply

import (
	"reflect"
	"slices"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// listPatch is a patch for a list whose items are merged.
type listPatch struct {
	field int
	items int // where they are in the body; 0 if they are not
	order int // index of $setElementOrder; 0 without it
}

// noteList notes the items or the order for a list. ok is false if they are there already.
func noteList(lists []listPatch, field, at int, order bool) (_ []listPatch, ok bool) {
	i := slices.IndexFunc(lists, func(l listPatch) bool { return l.field == field })
	if i < 0 {
		i, lists = len(lists), append(lists, listPatch{field: field})
	}
	to := &lists[i].items
	if order {
		to = &lists[i].order
	}
	ok = *to == 0
	*to = at
	return lists, ok
}

// list merges a list, as package strategic does, where each item has a key that no other has. It
// reports false for all others.
func (d *direct) list(v reflect.Value, key string, l *listPatch) bool {
	var a, b, c [8]string
	live, ok := keysOf(v, key, a[:0])
	if !ok || len(live) == 0 && l.items == 0 {
		return false
	}
	var change, order []string
	if l.items != 0 {
		if change, ok = d.keys(l.items, key, false, b[:0]); !ok {
			return false
		}
	}
	if l.order != 0 {
		if order, ok = d.keys(l.order, key, true, c[:0]); !ok || len(order) == 0 || !follows(change, order) {
			return false
		}
	}
	if len(live)+len(change) == 0 && l.order != 0 {
		return false
	}
	if l.items != 0 && !d.mergeItems(v, live, change, l.items) {
		return false
	}
	all := live
	for _, k := range change {
		if !slices.Contains(live, k) {
			all = append(all, k)
		}
	}
	if len(live) > 0 && l.items != 0 {
		all = rearrange(v, all, change, live)
	}
	if l.order != 0 {
		rearrange(v, all, order, live)
	}
	return true
}

// keysOf returns the keys of a list's items; ok is false unless all have different ones.
func keysOf(list reflect.Value, key string, into []string) (keys []string, ok bool) {
	n := list.Len()
	if n > fewItems {
		return nil, false
	}
	field := patchFieldsOf(list.Type().Elem()).index[key]
	for i := range n {
		if into, ok = another(into, list.Index(i).Field(field).String()); !ok {
			return nil, false
		}
	}
	return into, true
}

func another(keys []string, key string) ([]string, bool) {
	if key == "" || slices.Contains(keys, key) {
		return nil, false
	}
	return append(keys, key), true
}

// keys returns the merge keys of the items of a list in the body. alone means that the items have no other
// fields.
func (d *direct) keys(at int, key string, alone bool, into []string) (keys []string, ok bool) {
	end := scan.Loose.Elements(d.body, at, func(at int) (int, bool) {
		end := scan.Loose.Value(d.body, at, deepestDirect)
		if end < 0 || d.body[at] != '{' || len(into) == fewItems || alone && !hasOneMember(d.body[at:end]) {
			return -1, false
		}
		value := scan.Lookup(d.body[at:end], key)
		if to, has := scan.String(value, 0); to < 0 || has&scan.Escaped != 0 {
			return -1, false
		}
		if into, ok = another(into, string(value[1:len(value)-1])); !ok {
			return -1, false
		}
		return end, true
	})
	return into, end >= 0
}

// hasOneMember reports whether an object has one member.
func hasOneMember(object []byte) bool {
	n := 0
	scan.Loose.Members(object, 0, func(_ scan.Name, at int) (int, bool) {
		n++
		return scan.Skip(object, at), true
	})
	return n == 1
}

// follows reports whether the items of a patch are among the wanted ones, in their order.
func follows(change, wanted []string) bool {
	for _, k := range change {
		i := slices.Index(wanted, k)
		if i < 0 {
			return false
		}
		wanted = wanted[i+1:]
	}
	return true
}

// mergeItems merges the items of a patch into those with the same key, and adds the others behind
// them.
func (d *direct) mergeItems(v reflect.Value, live, change []string, at int) bool {
	added := 0
	for _, k := range change {
		if !slices.Contains(live, k) {
			added++
		}
	}
	n := len(live)
	all := v
	if added > 0 || v.IsNil() {
		all = reflect.MakeSlice(v.Type(), n+added, n+added)
		reflect.Copy(all, v)
	}
	i := 0
	end := scan.Loose.Elements(d.body, at, func(at int) (int, bool) {
		to := slices.Index(live, change[i])
		fresh := to < 0
		if fresh {
			to = n
			n++
		}
		i++
		return d.object(all.Index(to), at, fresh), true
	})
	v.Set(all)
	return end >= 0
}

// rearrange sorts the items of a list with these keys as package strategic does: wanted items in their wanted order, and
// the others between them as they were before. It returns the keys in their new order.
func rearrange(v reflect.Value, keys, wanted, before []string) []string {
	type placed struct{ at, place, was int }
	var few, more [8]placed
	named, others := few[:0], more[:0]
	for i, k := range keys {
		was := slices.Index(before, k)
		if place := slices.Index(wanted, k); place >= 0 {
			named = append(named, placed{i, place, was})
		} else {
			others = append(others, placed{i, 0, was})
		}
	}
	slices.SortStableFunc(named, func(a, b placed) int { return a.place - b.place })
	slices.SortStableFunc(others, func(a, b placed) int { return a.was - b.was })
	out := make([]int, 0, len(keys))
	moved := false
	for len(named) > 0 || len(others) > 0 {
		first := &named
		if len(named) == 0 || len(others) > 0 && named[0].was >= 0 && others[0].was < named[0].was {
			first = &others
		}
		moved = moved || (*first)[0].at != len(out)
		out = append(out, (*first)[0].at)
		*first = (*first)[1:]
	}
	if !moved {
		return keys
	}
	list, ordered := reflect.MakeSlice(v.Type(), len(out), len(out)), make([]string, len(out))
	for i, at := range out {
		list.Index(i).Set(v.Index(at))
		ordered[i] = keys[at]
	}
	v.Set(list)
	return ordered
}
