package blame

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// step is one step of a path: a key of an object, or an element of a list.
type step struct {
	key     string
	index   int // of an element
	element any // nil for a key
	id      string
}

// path leads to a leaf.
type path []step

// String returns the path in its usual notation, which also identifies it: spec.containers[name="web"].image.
func (p path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.element != nil:
			b.WriteString("[" + s.id + "]")
		case strings.ContainsAny(s.key, ".[]"):
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// leaf is a value without children, and its path.
type leaf struct {
	at    path
	value string // as JSON
}

// flatten returns the leaves of an object by path.
func flatten(obj map[string]any) map[string]leaf {
	leaves := map[string]leaf{}
	walk(nil, obj, func(p path, value any) {
		text, _ := json.Marshal(value) // it was decoded from JSON
		leaves[p.String()] = leaf{at: p, value: string(text)}
	})
	return leaves
}

// walk calls do for each leaf. Empty objects and lists are leaves.
func walk(at path, value any, do func(path, any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			walk(append(slices.Clip(at), step{key: key}), child, do)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, s := range elements(v) {
			walk(append(slices.Clip(at), s), v[i], do)
		}
		if len(v) > 0 {
			return
		}
	}
	do(at, value)
}

// identities are fields that identify the elements of a list whatever their index: the first one that is unique
// among the elements counts.
var identities = []string{"name", "type", "key", "mountPath", "devicePath", "containerPort", "port", "ip", "uid", "topologyKey", "host", "path"}

// elements returns the steps into a list.
func elements(list []any) []step {
	steps := make([]step, len(list))
	by := identity(list)
	for i, e := range list {
		steps[i] = step{index: i, element: e, id: strconv.Itoa(i)}
		if e == nil {
			steps[i].element = struct{}{} // null: an element all the same
		}
		if by != "" {
			text, _ := json.Marshal(e.(map[string]any)[by])
			steps[i].id = by + "=" + string(text)
		}
	}
	return steps
}

func identity(list []any) string {
	for _, field := range identities {
		seen := map[any]bool{}
		for _, e := range list {
			obj, _ := e.(map[string]any)
			switch v := obj[field].(type) {
			case string, int64, float64:
				seen[v] = true
			}
		}
		if len(seen) == len(list) && len(list) > 0 {
			return field
		}
	}
	return ""
}

// owns reports whether a set of fields, as in managedFields, contains a path.
func owns(fields map[string]any, p path) bool {
	for _, s := range p {
		next, ok := child(fields, s)
		if !ok {
			return false
		}
		if len(next) == 0 {
			return true // a leaf, or all that is below
		}
		fields = next
	}
	return true
}

func child(fields map[string]any, s step) (map[string]any, bool) {
	if s.element == nil {
		next, ok := fields["f:"+s.key].(map[string]any)
		return next, ok
	}
	for key, next := range fields {
		if matches(key, s) {
			below, ok := next.(map[string]any)
			return below, ok
		}
	}
	return nil, false
}

// matches: k:{"name":"web"} is the element with these fields, v:"x" the value, i:0 the place.
func matches(key string, s step) bool {
	kind, text, _ := strings.Cut(key, ":")
	switch kind {
	case "i":
		return text == strconv.Itoa(s.index)
	case "v":
		var value any
		return json.Unmarshal([]byte(text), &value) == nil && equal(value, s.element)
	case "k":
		var want map[string]any
		obj, isObject := s.element.(map[string]any)
		if json.Unmarshal([]byte(text), &want) != nil || !isObject {
			return false
		}
		for field, value := range want {
			if !equal(value, obj[field]) {
				return false
			}
		}
		return true
	}
	return false
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
