package fieldset

import (
	"reflect"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// Overlay sets the values of want in live at the paths in body, and returns these paths, and those whose
// value has changed: the result of Changes for live before and after. body is the JSON of an applied object,
// without repeated names; want is the same decoded into the plan's type; live is a struct of that type that
// no other code uses, with the name and namespace that body must have too. All paths must exist in live
// already: nothing is added to a map or a list, and no item is moved. The sets live in memory.
//
// ErrUnsupported is returned in all other cases, including a value whose spelling differs from its encoding.
// live may be changed then.
func (p *Plan) Overlay(memory *Memory, body []byte, name, namespace string, live, want reflect.Value) (named, changes Set, err error) {
	if p.root.form != formStruct {
		return nil, nil, ErrUnsupported
	}
	o := overlay{comparer: comparer{Memory: memory}, body: body, name: name, namespace: namespace}
	at := scan.Space(body, 0)
	if end := o.root(p.root, at, value{live, present}, value{want, present}); end < 0 || scan.Space(body, end) != len(body) || !o.named || o.err != nil {
		return nil, nil, ErrUnsupported
	}
	named = o.take(0)
	return named, o.changed(named), nil
}

// overlay is one call of Overlay. Its methods take the index of a value in the body, and return
// the index behind it, or -1 if that is not supported. They push a branch for each path that is named
// onto the stack of its memory.
type overlay struct {
	comparer
	body            []byte
	name, namespace string
	named           bool // the body names the object
}

// deepest limits the nesting of a value that is skipped.
const deepest = 100

// skip skips a value.
func (o *overlay) skip(at int) int { return scan.Loose.Value(o.body, at, deepest) }

// isText reports whether a string without escapes equals a text.
func (o *overlay) isText(at, end int, text string) bool {
	return end-at == len(text)+2 && o.body[at] == '"' && string(o.body[at+1:end-1]) == text
}

// each returns a function for scan that gives each member of a struct to a function by its name.
func each(o *overlay, fn func(name []byte, at int) int) func(scan.Name, int) (int, bool) {
	return func(n scan.Name, at int) (int, bool) {
		if at >= len(o.body) {
			return -1, false
		}
		return fn(n.In(o.body), at), true
	}
}

// root is fields for the whole object, including its kind and name.
func (o *overlay) root(n *node, at int, live, want value) int {
	mark := len(o.stack)
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int {
		switch string(name) {
		case "kind", "apiVersion":
			return o.skip(at)
		case "metadata":
			f := n.field(name)
			if f == nil || f.form != formStruct {
				return -1
			}
			return o.metadata(f, at, live.field(f), want.field(f))
		}
		return o.field(n, name, at, live, want)
	}))
	o.stack[mark:].sort()
	return end
}

func (o *overlay) metadata(f *nodeField, at int, live, want value) int {
	mark := len(o.stack)
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int {
		switch string(name) {
		case "name", "namespace":
			end, is := o.skip(at), o.namespace
			if len(name) == len("name") {
				is, o.named = o.name, true
			}
			if end < 0 || !o.isText(at, end, is) {
				return -1
			}
			return end
		}
		return o.field(f.node, name, at, live, want)
	}))
	if o.stack[mark:].sort(); len(o.stack) > mark {
		o.parent(f.element, notMember, mark)
	}
	return end
}

// field sets the field of a struct.
func (o *overlay) field(n *node, name []byte, at int, live, want value) int {
	f := n.field(name)
	if f == nil {
		return -1
	}
	return o.value(f.node, f.element, false, at, live.field(f), want.field(f))
}

// value sets the value at one path. A parent list or map without separate fields is owned as well as its fields.
func (o *overlay) value(n *node, element string, inMapOrList bool, at int, live, want value) int {
	if live.presence != present || want.presence != present {
		return -1
	}
	if n.form == formScalar || n.form == formAtomic {
		return o.leaf(n, element, at, live, want)
	}
	mark, state := len(o.stack), notMember
	if inMapOrList {
		state = member
	}
	end := -1
	switch n.form {
	case formStruct:
		end = o.fields(n, at, live, want)
	case formMap:
		end = o.entries(n, at, live, want)
	case formSet, formKeyed:
		end = o.items(n, at, live, want)
	}
	if end < 0 || len(o.stack) == mark {
		return -1
	}
	o.parent(element, state, mark)
	return end
}

// leaf sets a value that has one owner.
func (o *overlay) leaf(n *node, element string, at int, live, want value) int {
	end := o.spelled(n, want.Value, at)
	if end < 0 || !live.CanSet() {
		return -1
	}
	differs := !o.equal(n, live.Value, want.Value)
	live.Set(want.Value)
	o.stack = append(o.stack, branch{element: element, state: member, differs: differs})
	return end
}

// parent pushes a branch for everything pushed since mark.
func (o *overlay) parent(element string, state state, mark int) {
	children := o.take(mark)
	differs := slices.ContainsFunc(children, func(b branch) bool { return b.differs })
	o.stack = append(o.stack, branch{element, state, differs, children})
}

// changed returns the part of a set that differs, as a comparison returns it.
func (m *Memory) changed(s Set) Set {
	mark := len(m.stack)
	for i := range s {
		if !s[i].differs {
			continue
		}
		b := branch{element: s[i].element, state: member}
		if len(s[i].children) > 0 {
			b.state, b.children = notMember, m.changed(s[i].children)
		}
		m.stack = append(m.stack, b)
	}
	return m.take(mark)
}

func (o *overlay) fields(n *node, at int, live, want value) int {
	mark := len(o.stack)
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int { return o.field(n, name, at, live, want) }))
	o.stack[mark:].sort()
	return end
}

// field finds a field by its name; nil if there is none, or if it has no owners.
func (n *node) field(name []byte) *nodeField {
	for i := range n.fields {
		if strings.TrimPrefix(n.fields[i].element, "f:") == string(name) {
			return &n.fields[i]
		}
	}
	return nil
}

// longestKey is the longest name that the YAML reader accepts, with up to six bytes for each of its
// bytes.
const longestKey = 1000 / 6

// entries sets entries of a map, whose values have no owners inside.
func (o *overlay) entries(n *node, at int, live, want value) int {
	if n.elem.form != formScalar && n.elem.form != formAtomic {
		return -1
	}
	mark := len(o.stack)
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int {
		if len(name) > longestKey {
			return -1
		}
		k := string(name)
		key := reflect.ValueOf(k).Convert(live.Type().Key())
		from, to := live.entry(n, key), want.entry(n, key)
		if from.presence != present || to.presence != present {
			return -1
		}
		end := o.spelled(n.elem, to.Value, at)
		if end < 0 {
			return -1
		}
		differs := !o.equal(n.elem, from.Value, to.Value)
		live.SetMapIndex(key, want.MapIndex(key))
		o.stack = append(o.stack, branch{element: fieldElement(k), state: member, differs: differs})
		return end
	}))
	o.stack[mark:].sort()
	return end
}

// items sets items of a list, which have the same order in both.
func (o *overlay) items(n *node, at int, live, want value) int {
	there, ok := elementsOf(n, live)
	named, known := elementsOf(n, want)
	if !ok || !known {
		return -1
	}
	mark, i, next := len(o.stack), 0, 0
	find := finder{elements: there}
	end := scan.Loose.Elements(o.body, at, func(at int) (int, bool) {
		if i == len(named) {
			return -1, false
		}
		to := find.findNear(i, named[i])
		if to < next {
			return -1, false
		}
		end := o.value(n.elem, named[i], true, at, live.item(n, to), want.item(n, i))
		next = to + 1
		i++
		return end, true
	})
	if i != len(named) {
		return -1
	}
	o.stack[mark:].sort()
	return end
}
