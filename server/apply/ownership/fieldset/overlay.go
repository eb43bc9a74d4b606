package fieldset

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Overlay sets in live what want has at the paths that tree names, and returns these paths.
// tree is the plain value of an applied object, without what nobody owns; want is the same
// decoded into the plan's type; live is a struct of that type which nobody else has. All
// that is named must be in live already: nothing is added to a map or a list, and no item
// changes its place. The set lives in memory.
//
// ErrUnsupported is all else, also a value that is spelled otherwise than it would be
// encoded. live is half changed then.
func (p *Plan) Overlay(memory *Memory, tree map[string]any, live, want reflect.Value) (Set, error) {
	if p.root.form != formStruct {
		return nil, ErrUnsupported
	}
	o := overlay{Memory: memory}
	if !o.fields(p.root, tree, value{live, present}, value{want, present}) {
		return nil, ErrUnsupported
	}
	return o.take(0), nil
}

// overlay is one call of Overlay. Its methods push a branch for each path that is named onto
// the stack of its memory, and answer false for what is not supported.
type overlay struct{ *Memory }

// value sets what stands at one path. Whatever its parent is, a list or a map without
// fields of its own, is owned besides what is in it.
func (o *overlay) value(n *node, element string, inMapOrList bool, tree any, live, want value) bool {
	if live.presence != present || want.presence != present {
		return false
	}
	mark, state := len(o.stack), notMember
	if inMapOrList {
		state = member
	}
	ok := false
	switch n.form {
	case formScalar, formAtomic:
		state = member
		if ok = live.CanSet() && spelledAs(n, want.Value, tree); ok {
			live.Set(want.Value)
		}
	case formStruct:
		var fields map[string]any
		if fields, ok = tree.(map[string]any); ok {
			ok = len(fields) > 0 && o.fields(n, fields, live, want)
		}
	case formMap:
		var entries map[string]any
		if entries, ok = tree.(map[string]any); ok {
			ok = len(entries) > 0 && o.entries(n, entries, live, want)
		}
	case formSet, formKeyed:
		var items []any
		if items, ok = tree.([]any); ok {
			ok = len(items) > 0 && o.items(n, items, live, want)
		}
	}
	if !ok {
		return false
	}
	children := o.take(mark)
	o.stack = append(o.stack, branch{element, state, children})
	return true
}

func (o *overlay) fields(n *node, tree map[string]any, live, want value) bool {
	mark := len(o.stack)
	for name, v := range tree {
		f := n.field(name)
		if f == nil || !o.value(f.node, f.element, false, v, live.field(f), want.field(f)) {
			return false
		}
	}
	o.stack[mark:].sort()
	return true
}

// field finds a field by its name; nil is one that there is not, or that nobody owns.
func (n *node) field(name string) *nodeField {
	for i := range n.fields {
		if strings.TrimPrefix(n.fields[i].element, "f:") == name {
			return &n.fields[i]
		}
	}
	return nil
}

// entries sets entries of a map, whose values have no owners inside.
func (o *overlay) entries(n *node, tree map[string]any, live, want value) bool {
	if n.elem.form != formScalar && n.elem.form != formAtomic {
		return false
	}
	mark := len(o.stack)
	for k, v := range tree {
		key := reflect.ValueOf(k).Convert(live.Type().Key())
		to := want.entry(n, key)
		if live.entry(n, key).presence != present || to.presence != present || !spelledAs(n.elem, to.Value, v) {
			return false
		}
		live.SetMapIndex(key, want.MapIndex(key))
		o.stack = append(o.stack, branch{element: fieldElement(k), state: member})
	}
	o.stack[mark:].sort()
	return true
}

// items sets items of a list, which stand in the same order in both.
func (o *overlay) items(n *node, tree []any, live, want value) bool {
	there, ok := elementsOf(n, live)
	named, known := elementsOf(n, want)
	if !ok || !known || len(named) != len(tree) {
		return false
	}
	mark, next := len(o.stack), 0
	find := finder{elements: there}
	for i, e := range named {
		at := find.findNear(i, e)
		if at < next || !o.value(n.elem, e, true, tree[i], live.item(n, at), want.item(n, i)) {
			return false
		}
		next = at + 1
	}
	o.stack[mark:].sort()
	return true
}

// spelledAs says that a value is encoded as the plain value that it was decoded from. What
// compares spellings then finds the same changes as what compares values.
func spelledAs(n *node, v reflect.Value, tree any) bool {
	if n.form == formScalar && n.codec == codecNone {
		switch t := tree.(type) {
		case string:
			return v.Kind() == reflect.String && v.String() == t || isBytes(v) && base64.StdEncoding.EncodeToString(v.Bytes()) == t
		case int64:
			return v.CanInt() && v.Int() == t
		case bool:
			return v.Kind() == reflect.Bool && v.Bool() == t
		}
		return false
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return false
	}
	var plain any
	return utiljson.Unmarshal(text, &plain) == nil && reflect.DeepEqual(plain, tree)
}

func isBytes(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}
