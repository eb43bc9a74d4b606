package fieldset

import (
	"reflect"
	"slices"
	"strconv"
)

// elementsOf spells the path elements of a list's items; ok is false if they are not
// unique or cannot be spelled.
func elementsOf(n *node, list value) (out []string, ok bool) {
	if list.presence != present {
		return nil, true
	}
	out = make([]string, list.Len())
	for i := range out {
		if out[i], ok = itemElement(n, list.Index(i)); !ok {
			return nil, false
		}
	}
	return out, distinct(out)
}

// few is the number of elements up to which a scan is faster than building a map.
const few = 32

// distinct reports whether no element occurs twice.
func distinct(elements []string) bool {
	if len(elements) <= few {
		for i, e := range elements {
			if slices.Contains(elements[:i], e) {
				return false
			}
		}
		return true
	}
	return len(places(elements)) == len(elements)
}

// finder finds the positions of elements in a list.
type finder struct {
	elements []string
	at       map[string]int // made when it is needed
}

// findNear is find for an element that is most likely at index i, for items seldom move.
func (f *finder) findNear(i int, element string) int {
	if i < len(f.elements) && f.elements[i] == element {
		return i
	}
	return f.find(element)
}

// find returns -1 for an element that is not there.
func (f *finder) find(element string) int {
	if len(f.elements) <= few {
		return slices.Index(f.elements, element)
	}
	if f.at == nil {
		f.at = places(f.elements)
	}
	if i, ok := f.at[element]; ok {
		return i
	}
	return -1
}

// places returns the positions of elements.
func places(elements []string) map[string]int {
	at := make(map[string]int, len(elements))
	for i, e := range elements {
		at[e] = i
	}
	return at
}

// itemElement spells the path element of an item of a list.
func itemElement(n *node, item reflect.Value) (string, bool) {
	for item.Kind() == reflect.Pointer {
		if item.IsNil() {
			return "", false
		}
		item = item.Elem()
	}
	var buf [96]byte
	if n.form == formSet {
		b, ok := appendScalar(append(buf[:0], "v:"...), item)
		return string(b), ok
	}
	if len(n.keys) == 0 {
		return "", false
	}
	b := append(buf[:0], "k:{"...)
	for i := range n.keys {
		k := &n.keys[i]
		b = append(b, k.prefix...)
		v := fieldAt(item, k.index)
		for v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if k.omitEmpty && v.IsZero() && v.Kind() != reflect.Struct {
			if k.fallback == "" {
				return "", false
			}
			b = append(b, k.fallback...)
			continue
		}
		var ok bool
		if b, ok = appendScalar(b, v); !ok {
			return "", false
		}
	}
	return string(append(b, '}')), true
}

// appendScalar appends a scalar as JSON, escaped once more for use inside a string. It fails for a scalar
// that the library might spell differently.
func appendScalar(b []byte, v reflect.Value) ([]byte, bool) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if !plainText(s) {
			return b, false
		}
		b = append(b, `\"`...)
		b = append(b, s...)
		return append(b, `\"`...), true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), true
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), true
	}
	return b, false
}

// plainText reports whether a string has no escapes in any JSON encoding.
func plainText(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < 0x20 || b >= 0x7f || b == '"' || b == '\\' || b == '<' || b == '>' || b == '&' {
			return false
		}
	}
	return true
}

// fieldElement spells the path element of a map key.
func fieldElement(key string) string {
	if plainText(key) {
		return "f:" + key
	}
	quoted := appendQuoted(nil, "f:"+key)
	return string(quoted[1 : len(quoted)-1])
}
