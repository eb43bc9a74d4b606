package apply

import (
	"bytes"
	"reflect"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// elementOrder begins the name of a directive: in which order the items of a list shall be.
const elementOrder = "$setElementOrder/"

// changeDirectly applies a merge patch, strategic or not, to a copy of current while it reads the text of the
// patch, without trees. The result is that of changeTree or changeDocument. It returns false for a patch that
// needs those: with an error, an unknown or repeated field, a directive other than an order of items, a
// number that is not a small integer (see direct.suits), or an unusual list.
func changeDirectly(patch *Patch, current runtime.Object) (runtime.Object, bool) {
	if _, custom := current.(*unstructured.Unstructured); custom || keepsSpelling(reflect.TypeOf(current).Elem()) {
		return nil, false
	}
	d := direct{json: patch.Types, body: bytes.TrimSpace(patch.Body), strategic: patch.Type == codecs.PatchStrategic}
	if !d.supported() {
		return nil, false
	}
	patched := current.DeepCopyObject()
	if end := d.object(reflect.ValueOf(patched).Elem(), 0, false); end != len(d.body) {
		return nil, false
	}
	return patched, true
}

// direct is one patch. Its methods take the index of a value in the body, and return that behind
// it, or -1 if changeDirectly does not support the patch.
type direct struct {
	json      codecjson.Codec
	body      []byte
	strategic bool
	nulls     bool // there may be a null in it
	escapes   bool // there is one in a string
}

const (
	longestDirect = 64 << 10 // bytes of a body
	deepestDirect = 100
	fewItems      = 64 // of a list, or names of a map: each is compared with all others
	plainDigits   = 9  // of a number that all decoders read alike
)

// supported reports whether the patch has only values that the library takes literally: no directives, no escaped
// names, no numbers but small integers.
func (d *direct) supported() bool {
	b := d.body
	if len(b) > longestDirect {
		return false
	}
	depth := 0
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end, has := scan.String(b, i)
			if end < 0 || !d.supportsString(b[i+1:end-1], has) {
				return false
			}
			i = end
		case '0' <= c && c <= '9':
			first := i
			for i++; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
			}
			if i-first > plainDigits || i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
				return false
			}
		case c == '-':
			return false
		case c == '{' || c == '[':
			if depth++; depth > deepestDirect {
				return false
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		default:
			d.nulls = d.nulls || c == 'n'
			i++
		}
	}
	return true
}

func (d *direct) supportsString(text []byte, has scan.Text) bool {
	if has&scan.Escaped != 0 {
		if d.escapes = true; !onlyMarkup(text) {
			return false
		}
	}
	if has&scan.NonASCII != 0 && !utf8.Valid(text) {
		return false
	}
	return len(text) == 0 || text[0] != '$' || d.strategic && bytes.HasPrefix(text, []byte(elementOrder))
}

// onlyMarkup reports whether a string has no escapes of code points but those that package encoding/json, and so
// most clients in Go, writes for <, > and &.
func onlyMarkup(text []byte) bool {
	for {
		_, rest, found := bytes.Cut(text, []byte(`\u`))
		if !found {
			return true
		}
		if len(rest) < 4 || string(rest[:4]) != "003c" && string(rest[:4]) != "003e" && string(rest[:4]) != "0026" {
			return false
		}
		text = rest[4:]
	}
}

// object patches a struct. fresh means that the live object has none there, so the patch's value is taken as
// it is.
func (d *direct) object(v reflect.Value, at int, fresh bool) int {
	fields := patchFieldsOf(v.Type())
	if len(fields.tagged) > 64 {
		return -1
	}
	lacked := fields.missingIn(d.json.View(), v.Type())
	var seen uint64 // fields, by their index
	var few [4]listPatch
	lists := few[:0]
	end := scan.Loose.Members(d.body, at, func(n scan.Name, at int) (int, bool) {
		if n.Has&scan.Escaped != 0 {
			return -1, false
		}
		name := d.body[n.At+1 : n.End-1]
		name, ordered := bytes.CutPrefix(name, []byte(elementOrder))
		i, known := fields.index[string(name)]
		if !known || at >= len(d.body) || i < len(lacked) && lacked[i] {
			return -1, false
		}
		if ordered || d.body[at] == '[' && d.strategic && fields.merged[i] {
			end := scan.Loose.Value(d.body, at, deepestDirect)
			noted, ok := noteList(lists, i, at, ordered)
			if lists = noted; !ok || fresh && ordered || d.body[at] != '[' {
				return -1, false
			}
			return end, true
		}
		if seen&(1<<i) != 0 {
			return -1, false
		}
		seen |= 1 << i
		return d.field(v.Field(i), fields.tagged[i], at, fresh), true
	})
	for i := range lists {
		l := &lists[i]
		if end < 0 || fields.keys[l.field] == "" || seen&(1<<l.field) != 0 || l.order != 0 && fields.shown[l.field] && v.Field(l.field).IsNil() || !d.list(v.Field(l.field), fields.keys[l.field], l) {
			return -1
		}
	}
	return end
}

// field patches a field with anything but a list to be merged.
func (d *direct) field(v reflect.Value, tagged bool, at int, fresh bool) int {
	switch d.body[at] {
	case 'n':
		v.SetZero()
		return scan.Word(d.body, at, "null")
	case '{':
		if d.strategic && tagged {
			return -1
		}
		switch {
		case v.Kind() == reflect.Map:
			return d.entries(v, at)
		case v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Kind() == reflect.Struct && !patchFieldsOf(v.Type().Elem()).opaque:
			made := reflect.New(v.Type().Elem())
			v.Set(made)
			return d.object(made.Elem(), at, true)
		}
		inner, ok := descend(v)
		if !ok {
			return -1
		}
		return d.object(inner, at, fresh)
	}
	return d.read(v, at)
}

// read gives a field a value that is not merged.
func (d *direct) read(v reflect.Value, at int) int {
	end, t := scan.Loose.Value(d.body, at, deepestDirect), v.Type()
	if end < 0 || !d.json.Plain(t) || d.escapes && quantities.Holds(t) {
		return -1
	}
	text := d.body[at:end:end]
	v.SetZero()
	if d.nulls && bytes.Contains(text, []byte("null")) {
		if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || patchFieldsOf(t.Elem()).opaque {
			return -1
		}
		return d.items(v, at)
	}
	if !d.json.ReadPlain(text, v) {
		return -1
	}
	return end
}

// items reads a list of structs, in which fields may be null.
func (d *direct) items(v reflect.Value, at int) int {
	list := reflect.MakeSlice(v.Type(), 0, 4)
	end := scan.Loose.Elements(d.body, at, func(at int) (int, bool) {
		list = reflect.Append(list, reflect.Zero(v.Type().Elem()))
		return d.object(list.Index(list.Len()-1), at, true), true
	})
	v.Set(list)
	return end
}

// entries patches a map of single values.
func (d *direct) entries(m reflect.Value, at int) int {
	t := m.Type()
	if t.Key().Kind() != reflect.String || !single(t.Elem()) || !d.json.Plain(t) || d.escapes && quantities.Holds(t) {
		return -1
	}
	fresh := m.IsNil()
	if fresh {
		m.Set(reflect.MakeMap(t))
	}
	var few [8]string
	names := few[:0]
	return scan.Loose.Members(d.body, at, func(n scan.Name, at int) (int, bool) {
		name := d.text(n.At, n.End)
		if n.Has&scan.Escaped != 0 || name != "" && name[0] == '$' || len(names) == fewItems || slices.Contains(names, name) || at >= len(d.body) {
			return -1, false
		}
		names = append(names, name)
		key := reflect.ValueOf(name).Convert(t.Key())
		if d.body[at] == 'n' {
			if fresh {
				return -1, false
			}
			m.SetMapIndex(key, reflect.Value{})
			return scan.Word(d.body, at, "null"), true
		}
		item := reflect.New(t.Elem()).Elem()
		end := d.read(item, at)
		if end >= 0 {
			m.SetMapIndex(key, item)
		}
		return end, true
	})
}

// single reports whether a value of the type is set as a whole inside a map.
func single(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Pointer:
		return false
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	case reflect.Struct:
		return patchFieldsOf(t).opaque
	}
	return true
}

// text returns the content of a string without escapes. It is a part of the body.
func (d *direct) text(at, end int) string { return string(d.body[at+1 : end-1]) }
