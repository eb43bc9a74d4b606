package fieldset

import (
	"encoding/base64"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// spelled checks that a value is encoded exactly as in the body, from which it was decoded: then comparing
// spellings finds the same changes as comparing values. It returns the index after it, or -1.
func (o *overlay) spelled(n *node, v reflect.Value, at int) int {
	if at >= len(o.body) {
		return -1
	}
	if n.codec != codecNone {
		return o.spelledBySelf(n, v, at)
	}
	inner := n.form
	if inner != formScalar {
		inner = n.inner
	}
	switch inner {
	case formScalar:
		return o.spelledScalar(v, at)
	case formStruct:
		return o.spelledFields(n, v, at)
	case formMap:
		return o.spelledEntries(n, v, at)
	case formList:
		return o.spelledItems(n, v, at)
	}
	return -1
}

// spelledScalar: strings (apart from escapes), whole numbers and booleans have one spelling each.
func (o *overlay) spelledScalar(v reflect.Value, at int) int {
	end := o.skip(at)
	if end < 0 {
		return -1
	}
	ok := false
	switch c := o.body[at]; {
	case c == '"' && v.Kind() == reflect.Slice:
		ok = isBytes(v) && o.isText(at, end, base64.StdEncoding.EncodeToString(v.Bytes()))
	case c == '"':
		ok = v.Kind() == reflect.String
	case c == 't' || c == 'f':
		ok = v.Kind() == reflect.Bool
	case c != 'n':
		ok = v.CanInt()
	}
	if !ok {
		return -1
	}
	return end
}

func isBytes(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

// spelledValue is spelled for a value that may be null, or not be there.
func (o *overlay) spelledValue(n *node, v value, at int) int {
	switch v.presence {
	case absent:
		return -1
	case null:
		return scan.Word(o.body, at, "null")
	}
	return o.spelled(n, v.Value, at)
}

func (o *overlay) spelledFields(n *node, v reflect.Value, at int) int {
	in, named := value{v, present}, 0
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int {
		f := n.field(name)
		if named++; f == nil {
			return -1
		}
		return o.spelledValue(f.node, in.field(f), at)
	}))
	for i := range n.fields {
		if in.field(&n.fields[i]).presence != absent {
			named--
		}
	}
	if named != 0 {
		return -1
	}
	return end
}

func (o *overlay) spelledEntries(n *node, v reflect.Value, at int) int {
	in, named := value{v, present}, 0
	end := scan.Loose.Members(o.body, at, each(o, func(name []byte, at int) int {
		if named++; len(name) > longestKey {
			return -1
		}
		return o.spelledValue(n.elem, in.entry(n, reflect.ValueOf(string(name)).Convert(v.Type().Key())), at)
	}))
	if v.Kind() != reflect.Map || named != v.Len() {
		return -1
	}
	return end
}

func (o *overlay) spelledItems(n *node, v reflect.Value, at int) int {
	in, i := value{v, present}, 0
	end := scan.Loose.Elements(o.body, at, func(at int) (int, bool) {
		if i == v.Len() {
			return -1, false
		}
		i++
		return o.spelledValue(n.elem, in.item(n, i-1), at), true
	})
	if i != v.Len() {
		return -1
	}
	return end
}

// spelledBySelf is spelled for types that encode themselves.
func (o *overlay) spelledBySelf(n *node, v reflect.Value, at int) int {
	end := o.skip(at)
	if end < 0 {
		return -1
	}
	ok := false
	switch n.codec {
	case codecQuantity:
		q := *pointerTo[resource.Quantity](v) // a copy, because it caches its text
		ok = o.isText(at, end, q.String())
	case codecIntOrString:
		ok = (pointerTo[intstr.IntOrString](v).Type == intstr.String) == (o.body[at] == '"')
	case codecTime, codecMicroTime, codecDuration:
		text, err := json.Marshal(v.Interface())
		ok = err == nil && string(text) == string(o.body[at:end])
	}
	if !ok {
		return -1
	}
	return end
}
