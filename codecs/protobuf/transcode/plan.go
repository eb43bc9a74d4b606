package transcode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/view"
)

// plans are cached by view, in separate maps: a key of two values would be allocated for each look-up.
var plans sync.Map // *view.View -> *sync.Map of reflect.Type -> *plan; nil for a type without a plan

// planOf returns how messages of a type are made, or nil.
func planOf(v *view.View, t reflect.Type) *plan {
	of, ok := plans.Load(v)
	if !ok {
		of, _ = plans.LoadOrStore(v, new(sync.Map))
	}
	known := of.(*sync.Map)
	if p, ok := known.Load(t); ok {
		return p.(*plan)
	}
	p := (planner{view: v}).plan(t)
	known.Store(t, p)
	return p
}

// planner has the types that are being planned: recursive ones are not supported.
type planner struct {
	view *view.View
	in   []reflect.Type
}

// within returns the planner for the fields of a type.
func (b planner) within(t reflect.Type) planner { return planner{b.view, append(b.in, t)} }

func (b planner) plan(t reflect.Type) *plan {
	if slices.Contains(b.in, t) || t.Kind() != reflect.Struct || writesItself(t) {
		return nil
	}
	p := &plan{}
	var ok bool
	if p.order, ok = b.within(t).fields(p, t); !ok {
		return nil
	}
	// The generated marshaller must agree on an empty value; otherwise the type has peculiarities.
	w := &walk{marks: make([]mark, len(p.fields))}
	for i := range w.marks {
		w.marks[i].from = -1
	}
	w.arrange(p, p.order, w.marks)
	if empty, ok := emptyMessage(t); !ok || !bytes.Equal(empty, w.spare) {
		return nil
	}
	if inOrder(p) {
		p.order = nil
	}
	for i := range p.fields {
		f := &p.fields[i]
		f.zero = f.shown
		p.zeroAt = append(p.zeroAt, len(p.zeros))
		p.zeros = append(p.zeros, f.zero...)
	}
	p.zeroAt = append(p.zeroAt, len(p.zeros))
	return p
}

// inOrder reports whether the fields of a message have the same order as in JSON.
func inOrder(p *plan) bool {
	last := -1
	for _, n := range p.order {
		if n.tag != nil || n.field < last {
			return false
		}
		last = n.field
	}
	return true
}

// fields adds the fields of a struct to a plan, with their positions in its message.
func (b planner) fields(p *plan, t reflect.Type) ([]node, bool) {
	type numbered struct {
		number uint64
		node
	}
	var found []numbered
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		quoted, plain := quote(name)
		number, tag := tagOf(f)
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta]() && f.Anonymous && name == "" && tag == nil:
			for _, known := range []string{`"kind":`, `"apiVersion":`} {
				p.fields = append(p.fields, field{quoted: known})
			}
			continue
		case tag == nil || options == "string" || strings.Contains(options, ",string"):
			return nil, false
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || writesItself(f.Type) || slices.Contains(b.in, f.Type) {
				return nil, false
			}
			inner, ok := b.within(f.Type).fields(p, f.Type)
			if !ok {
				return nil, false
			}
			found = append(found, numbered{number, node{tag: tag, inner: inner}})
			continue
		case !plain || !f.IsExported():
			return nil, false
		}
		v, ok := b.value(f.Type, tag)
		if !ok {
			return nil, false
		}
		zero, ok := zeroOf(f.Type, tag)
		if !ok {
			return nil, false
		}
		shown := zero
		if b.view.Lacks(t, name) {
			shown = nil
		} else if f.Type.Kind() == reflect.Struct && b.view.LacksAny(f.Type) {
			empty, _ := emptyMessage(f.Type)
			empty = Without(b.view, empty, f.Type)
			shown = append(binary.AppendUvarint(slices.Clone(tag), uint64(len(empty))), empty...)
		}
		found = append(found, numbered{number, node{field: len(p.fields)}})
		p.fields = append(p.fields, field{quoted, v, zero, shown})
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].number < found[j].number })
	nodes := make([]node, len(found))
	for i := range found {
		nodes[i] = found[i].node
	}
	return nodes, true
}

// tagOf returns the number of a field and the bytes before it in a message: nil if it has none. The wire type
// follows from the type, because the struct tag is not always right.
func tagOf(f reflect.StructField) (number uint64, tag []byte) {
	number = uint64(tagged.Number(f))
	if number == 0 || slices.Contains(strings.Split(f.Tag.Get("protobuf"), ","), "packed") {
		return 0, nil
	}
	of, wire := f.Type, uint64(2)
	if k := of.Kind(); k == reflect.Pointer || k == reflect.Slice {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64:
		wire = 0
	}
	return number, binary.AppendUvarint(nil, number<<3|wire)
}

// writesItself reports whether a type's JSON or message do not follow from its fields.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()) ||
		t.Kind() != reflect.Struct && p.Implements(reflect.TypeFor[tagged.Generated]())
}

// zeroOf returns the part of a message for a field that is missing in JSON.
func zeroOf(t reflect.Type, tag []byte) ([]byte, bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nil, true
	case reflect.Struct:
		empty, ok := emptyMessage(t)
		return append(binary.AppendUvarint(slices.Clone(tag), uint64(len(empty))), empty...), ok
	}
	return append(slices.Clone(tag), 0), true
}

func emptyMessage(t reflect.Type) ([]byte, bool) {
	if !tagged.Supports(reflect.PointerTo(t)) {
		return nil, false
	}
	empty, err := tagged.Append(nil, reflect.New(t).Interface())
	return empty, err == nil
}

// value returns how a field of a type is made; false for types that are given up.
func (b planner) value(t reflect.Type, tag []byte) (value, bool) {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return messageOf(tag, seconds), true
	case reflect.TypeFor[metav1.MicroTime]():
		return messageOf(tag, micros), true
	case reflect.TypeFor[resource.Quantity]():
		return messageOf(tag, quantity), true
	case reflect.TypeFor[intstr.IntOrString]():
		return messageOf(tag, intOrString), true
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		return messageOf(tag, rawJSON), true
	}
	if t.Kind() != reflect.Pointer && writesItself(t) {
		return nil, false
	}
	switch t.Kind() {
	case reflect.String:
		return text(tag), true
	case reflect.Bool:
		return boolean(tag), true
	case reflect.Int32:
		return integer(tag, 32), true
	case reflect.Int64:
		return integer(tag, 64), true
	case reflect.Struct:
		p := b.plan(t)
		if p == nil {
			return nil, false
		}
		return messageOf(tag, p.message), true
	case reflect.Pointer:
		return b.single(t.Elem(), tag)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return base64Bytes(tag), !writesItself(t.Elem())
		}
		elem, ok := b.single(t.Elem(), tag)
		return elements(elem), ok
	case reflect.Map:
		if t.Key().Kind() != reflect.String || writesItself(t.Key()) {
			return nil, false
		}
		elem, ok := b.entryValue(t.Elem())
		return entries(tag, elem), ok
	}
	return nil, false
}

// single is value for a field that has one value.
func (b planner) single(t reflect.Type, tag []byte) (value, bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nil, false
	}
	return b.value(t, tag)
}

// entryValue is value for map entries.
func (b planner) entryValue(t reflect.Type) (value, bool) {
	tag := []byte{2<<3 | 2}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return b.value(t, tag)
	}
	if k := t.Kind(); k != reflect.String && k != reflect.Struct {
		return nil, false
	}
	return b.single(t, tag)
}
