package json

import (
	"bytes"
	"reflect"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/view"
)

// plans caches the encoders, decoders and checkers of types, with the fields that a view has.
type plans struct {
	view     *view.View
	encoders sync.Map // reflect.Type -> *lazyEncoder, of structs
	decoders sync.Map // reflect.Type -> *lazyDecoder, of structs
	values   sync.Map // reflect.Type -> decoder
	plain    sync.Map // reflect.Type -> bool
	roots    sync.Map // rootKey -> checker
	checkers sync.Map // structKey -> *lazyChecker
}

// all are the plans with all fields; plansOf makes those of a view on first use. All codecs of a process
// share them.
var (
	all   = &plans{}
	views sync.Map // *view.View -> *plans
)

func plansOf(v *view.View) *plans {
	if v == nil {
		return all
	}
	p, ok := views.Load(v)
	if !ok {
		p, _ = views.LoadOrStore(v, &plans{view: v})
	}
	return p.(*plans)
}

func (c Codec) plans() *plans {
	if c.state == nil {
		return all
	}
	return c.state.plans
}

// View selects the fields of the codec's types; nil: all.
func (c Codec) View() *view.View { return c.plans().view }

// marked renames the fields that the view lacks, in the text of a value, to names that no
// type has. It returns a malformed text unchanged: the reader reports the error.
func (pl *plans) marked(data []byte, t reflect.Type) []byte {
	if !pl.view.LacksAny(t) {
		return data
	}
	var names []scan.Name
	m := marker{pl.view, data, &names}
	if m.value(scan.Space(data, 0), t, 0) < 0 || len(names) == 0 {
		return data
	}
	out := make([]byte, 0, len(data)+len(names)*len(view.Marked("")))
	last := 0
	for _, n := range names {
		out = append(out, data[last:n.End-1]...)
		out = append(out, view.Marked("")...)
		last = n.End - 1
	}
	return append(out, data[last:]...)
}

// marker finds the names of fields that a view lacks.
type marker struct {
	view  *view.View
	data  []byte
	names *[]scan.Name
}

// deepest bounds the nesting of a text that is scanned; the readers refuse deeper ones.
const deepest = 10_000

// value goes through a value that begins at an index, and returns the index after it, or -1.
func (m marker) value(i int, t reflect.Type, depth int) int {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if i >= len(m.data) || depth > deepest {
		return -1
	}
	lacks := m.view.LacksAny(t)
	switch c := m.data[i]; {
	case lacks && c == '[' && t.Kind() == reflect.Slice:
		return scan.Loose.Elements(m.data, i, func(at int) (int, bool) { return m.value(at, t.Elem(), depth+1), true })
	case lacks && c == '{' && t.Kind() == reflect.Map:
		return scan.Loose.Members(m.data, i, func(_ scan.Name, at int) (int, bool) { return m.value(at, t.Elem(), depth+1), true })
	case lacks && c == '{' && t.Kind() == reflect.Struct:
		fields := m.view.Fields(t)
		return scan.Loose.Members(m.data, i, func(n scan.Name, at int) (int, bool) {
			name := n.In(m.data)
			j := slices.IndexFunc(fields, func(f view.Field) bool { return f.Name == string(name) })
			if j >= 0 && !fields[j].Lacked {
				return m.value(at, fields[j].Type, depth+1), true
			}
			if j >= 0 {
				*m.names = append(*m.names, n)
			}
			return scan.Loose.Value(m.data, at, deepest-depth), true
		})
	}
	return scan.Loose.Value(m.data, i, deepest-depth)
}

// withNulls encodes a type like encoding/json, with null for the empty fields that the view wants although
// their tags omit them.
func (pl *plans) withNulls(data []byte, t reflect.Type) []byte {
	if !pl.view.NullsAny(t) {
		return data
	}
	w := nuller{view: pl.view, data: data}
	if w.value(0, t) < 0 {
		return data
	}
	return append(w.out, data[w.copied:]...)
}

type nuller struct {
	view   *view.View
	data   []byte
	out    []byte
	copied int // how much of data is in out
}

func (w *nuller) value(i int, t reflect.Type) int {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	nulls := w.view.NullsAny(t)
	switch c := w.data[i]; {
	case nulls && c == '[' && t.Kind() == reflect.Slice:
		return scan.Tight.Elements(w.data, i, func(at int) (int, bool) { return w.value(at, t.Elem()), true })
	case nulls && c == '{' && t.Kind() == reflect.Map:
		return scan.Tight.Members(w.data, i, func(_ scan.Name, at int) (int, bool) { return w.value(at, t.Elem()), true })
	case nulls && c == '{' && t.Kind() == reflect.Struct:
		return w.object(i, t)
	}
	return scan.Tight.Value(w.data, i, deepest)
}

// object writes the nulls of an object in the order of its fields.
func (w *nuller) object(i int, t reflect.Type) int {
	fields, next, empty := w.view.Fields(t), 0, true
	// until writes the nulls of the fields before one, in front of the byte at an index.
	until := func(name []byte, at int) {
		for ; next < len(fields) && (name == nil || fields[next].Name != string(name)); next++ {
			if !fields[next].Null {
				continue
			}
			w.out = append(w.out, w.data[w.copied:at]...)
			w.copied = at
			text := `"` + fields[next].Name + `":null`
			switch {
			case name != nil:
				text += ","
			case !empty:
				text = "," + text
			}
			w.out = append(w.out, text...)
			empty = false
		}
		next++
	}
	end := scan.Tight.Members(w.data, i, func(n scan.Name, at int) (int, bool) {
		name := bytes.Clone(n.In(w.data))
		known := slices.IndexFunc(fields, func(f view.Field) bool { return f.Name == string(name) })
		if known < 0 {
			return -1, false
		}
		until(name, n.At)
		empty = false
		return w.value(at, fields[known].Type), true
	})
	if end > 0 {
		until(nil, end-1)
	}
	return end
}
