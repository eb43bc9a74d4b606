package json

import (
	"encoding/base64"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The encoder below is encoding/json for the types of API objects, made ready once
// for each type. Whatever it has no fast way for goes to encoding/json itself.

// encoder appends the value that p points to.
type encoder func(dst []byte, p unsafe.Pointer) ([]byte, error)

// encoders holds an encoder for each struct type met.
var encoders sync.Map // reflect.Type -> *lazyEncoder

// lazyEncoder breaks the circle of types that contain themselves.
type lazyEncoder struct {
	once sync.Once
	t    reflect.Type
	fn   encoder
}

func structEncoder(t reflect.Type) *lazyEncoder {
	if e, ok := encoders.Load(t); ok {
		return e.(*lazyEncoder)
	}
	e, _ := encoders.LoadOrStore(t, &lazyEncoder{t: t})
	return e.(*lazyEncoder)
}

func (e *lazyEncoder) append(dst []byte, p unsafe.Pointer) ([]byte, error) {
	e.once.Do(func() { e.fn = newStructEncoder(e.t) })
	return e.fn(dst, p)
}

// appendStruct appends what a pointer to a struct leads to.
func appendStruct(dst []byte, v reflect.Value) ([]byte, error) {
	return structEncoder(v.Type().Elem()).append(dst, v.UnsafePointer())
}

var (
	marshalerType     = reflect.TypeFor[stdjson.Marshaler]()
	textMarshalerType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

func custom(t reflect.Type) bool {
	return t.Implements(marshalerType) || t.Implements(textMarshalerType) ||
		reflect.PointerTo(t).Implements(marshalerType) || reflect.PointerTo(t).Implements(textMarshalerType)
}

func newEncoder(t reflect.Type) encoder {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return appendTime
	case reflect.TypeFor[metav1.MicroTime]():
		return appendMicroTime
	case reflect.TypeFor[resource.Quantity]():
		return appendQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		return appendIntOrString
	case reflect.TypeFor[metav1.FieldsV1]():
		return appendFields
	case reflect.TypeFor[runtime.RawExtension]():
		return appendExtension
	}
	if custom(t) && t.Kind() != reflect.Pointer {
		return stdEncoder(t)
	}
	switch t.Kind() {
	case reflect.String:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return appendString(dst, *(*string)(p)), nil }
	case reflect.Bool:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return strconv.AppendBool(dst, *(*bool)(p)), nil }
	case reflect.Int32:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return strconv.AppendInt(dst, int64(*(*int32)(p)), 10), nil
		}
	case reflect.Int64:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return strconv.AppendInt(dst, *(*int64)(p), 10), nil
		}
	case reflect.Struct:
		return structEncoder(t).append
	case reflect.Pointer:
		return pointerEncoder(t)
	case reflect.Slice:
		return sliceEncoder(t)
	case reflect.Map:
		return mapEncoder(t)
	}
	return stdEncoder(t)
}

// stdEncoder leaves a value to encoding/json.
func stdEncoder(t reflect.Type) encoder {
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		data, err := stdjson.Marshal(reflect.NewAt(t, p).Interface())
		return append(dst, data...), err
	}
}

func pointerEncoder(t reflect.Type) encoder {
	elem := newEncoder(t.Elem())
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		target := *(*unsafe.Pointer)(p)
		if target == nil {
			return append(dst, "null"...), nil
		}
		return elem(dst, target)
	}
}

// sliceHeader is the memory of a slice.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func sliceEncoder(t reflect.Type) encoder {
	if t.Elem().Kind() == reflect.Uint8 && !custom(t.Elem()) {
		return appendBytes
	}
	elem, size := newEncoder(t.Elem()), t.Elem().Size()
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		s := (*sliceHeader)(p)
		if s.data == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i := range s.len {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = elem(dst, unsafe.Add(s.data, uintptr(i)*size)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
}

func mapEncoder(t reflect.Type) encoder {
	if t.Key().Kind() != reflect.String || custom(t.Key()) {
		return stdEncoder(t)
	}
	switch elem := t.Elem(); {
	case elem.Kind() == reflect.String && !custom(elem):
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return appendMap(dst, *(*map[string]string)(p), func(dst []byte, v *string) ([]byte, error) { return appendString(dst, *v), nil })
		}
	case elem == reflect.TypeFor[resource.Quantity]():
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return appendMap(dst, *(*map[string]resource.Quantity)(p), func(dst []byte, v *resource.Quantity) ([]byte, error) {
				return appendQuantity(dst, unsafe.Pointer(v))
			})
		}
	case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Uint8 && !custom(elem):
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return appendMap(dst, *(*map[string][]byte)(p), func(dst []byte, v *[]byte) ([]byte, error) { return appendBytes(dst, unsafe.Pointer(v)) })
		}
	}
	return stdEncoder(t)
}

func appendMap[V any](dst []byte, m map[string]V, value func([]byte, *V) ([]byte, error)) ([]byte, error) {
	if m == nil {
		return append(dst, "null"...), nil
	}
	var few [16]string
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		v := m[k]
		var err error
		if dst, err = value(dst, &v); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

type fieldEncoder struct {
	name   string // `"name":`
	offset uintptr
	empty  func(unsafe.Pointer) bool // nil: never left out
	value  encoder
}

func newStructEncoder(t reflect.Type) encoder {
	if custom(t) {
		return stdEncoder(t)
	}
	fields, ok := structFields(t, 0)
	if !ok {
		return stdEncoder(t)
	}
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		dst = append(dst, '{')
		first := true
		for i := range fields {
			f := &fields[i]
			at := unsafe.Add(p, f.offset)
			if f.empty != nil && f.empty(at) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, f.name...)
			var err error
			if dst, err = f.value(dst, at); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// structFields lists the fields of a struct, those of embedded structs in their
// place. It fails for what only encoding/json can put in order.
func structFields(t reflect.Type, base uintptr) ([]fieldEncoder, bool) {
	var out []fieldEncoder
	seen := map[string]bool{}
	for f := range fieldsOf(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || custom(f.Type) {
				return nil, false
			}
			inner, ok := structFields(f.Type, base+f.Offset)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
			continue
		case !f.IsExported():
			continue
		case strings.Contains(options, "string") || strings.Contains(options, "omitzero") || !plain(name):
			return nil, false
		}
		if name == "" {
			name = f.Name
		}
		e := fieldEncoder{name: `"` + name + `":`, offset: base + f.Offset, value: newEncoder(f.Type)}
		if slices.Contains(strings.Split(options, ","), "omitempty") {
			e.empty = emptiness(f.Type)
		}
		out = append(out, e)
	}
	for _, f := range out {
		if seen[f.name] {
			return nil, false // which one wins depends on depth and tags
		}
		seen[f.name] = true
	}
	return out, true
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// plain tells whether a name needs no escaping and cannot be refused as a tag.
func plain(name string) bool {
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '$') {
			return false
		}
	}
	return true
}

// emptiness is what omitempty asks of a type; nil where nothing of it is empty.
func emptiness(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return (*sliceHeader)(p).len == 0 }
	case reflect.Pointer:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Int32:
		return func(p unsafe.Pointer) bool { return *(*int32)(p) == 0 }
	case reflect.Int64:
		return func(p unsafe.Pointer) bool { return *(*int64)(p) == 0 }
	case reflect.Struct:
		return nil
	case reflect.Map:
		return func(p unsafe.Pointer) bool {
			return *(*unsafe.Pointer)(p) == nil || reflect.NewAt(t, p).Elem().Len() == 0
		}
	case reflect.Array:
		return func(p unsafe.Pointer) bool { return t.Len() == 0 }
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}

func appendBytes(dst []byte, p unsafe.Pointer) ([]byte, error) {
	b := *(*[]byte)(p)
	if b == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '"')
	return append(base64.StdEncoding.AppendEncode(dst, b), '"'), nil
}

func appendTime(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return appendFormatted(dst, (*metav1.Time)(p).Time, time.RFC3339), nil
}

func appendMicroTime(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return appendFormatted(dst, (*metav1.MicroTime)(p).Time, metav1.RFC3339Micro), nil
}

func appendFormatted(dst []byte, t time.Time, layout string) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	return append(t.UTC().AppendFormat(dst, layout), '"')
}

func appendQuantity(dst []byte, p unsafe.Pointer) ([]byte, error) {
	data, err := (*resource.Quantity)(p).MarshalJSON()
	if err != nil || !compact(data) {
		return stdEncoder(reflect.TypeFor[resource.Quantity]())(dst, p)
	}
	return append(dst, data...), nil
}

func appendIntOrString(dst []byte, p unsafe.Pointer) ([]byte, error) {
	switch v := (*intstr.IntOrString)(p); v.Type {
	case intstr.Int:
		return strconv.AppendInt(dst, int64(v.IntVal), 10), nil
	case intstr.String:
		return appendString(dst, v.StrVal), nil
	}
	return stdEncoder(reflect.TypeFor[intstr.IntOrString]())(dst, p)
}

func appendFields(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if raw := (*metav1.FieldsV1)(p).Raw; compact(raw) {
		return append(dst, raw...), nil
	}
	return stdEncoder(reflect.TypeFor[metav1.FieldsV1]())(dst, p)
}

func appendExtension(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if raw := (*runtime.RawExtension)(p).Raw; compact(raw) || oneLine(raw) {
		return append(dst, raw...), nil
	}
	return stdEncoder(reflect.TypeFor[runtime.RawExtension]())(dst, p)
}

// oneLine tells a value that can stand as it is written within a line. Extensions
// keep their spelling: some may not change, and a stock server compares their bytes.
func oneLine(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' {
			return false
		}
	}
	return stdjson.Valid(raw)
}

// appendString appends a string literal; what needs escaping is left to encoding/json.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !safe[s[i]] {
			data, _ := stdjson.Marshal(s) // strings always encode
			return append(dst, data...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// safe are the bytes that stand for themselves in a string literal.
var safe = func() (table [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		table[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return table
}()
