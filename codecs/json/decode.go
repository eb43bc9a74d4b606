package json

import (
	"cmp"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	exact "sigs.k8s.io/json"
)

// The decoder reads clean JSON into empty API objects, prepared once for each type. It gives up at anything
// that is not clean: errors, unknown and duplicate fields, and everything too rare for a fast path. The exact
// decoder then starts again.

// decoder reads the next value of s into p, and reports whether it could.
type decoder func(s *source, p unsafe.Pointer) bool

// decodeDepth is the maximum depth of the fast path; the standard one decodes deeper values.
const decodeDepth = 200

// decodeClean reads text into a pointer to an empty struct. On false the struct is
// half filled.
func (pl *plans) decodeClean(text string, v reflect.Value) bool {
	s := newSource(text)
	return pl.structDecoder(v.Type().Elem()).read(s, v.UnsafePointer()) && s.end()
}

// decodeTree reads text as a map of plain values.
func decodeTree(text string) (map[string]any, bool) {
	s := newSource(text)
	v, ok := s.any()
	tree, isMap := v.(map[string]any)
	return tree, ok && isMap && s.end()
}

type lazyDecoder struct {
	of   *plans
	once sync.Once
	t    reflect.Type
	fn   decoder
}

func (pl *plans) structDecoder(t reflect.Type) *lazyDecoder {
	if d, ok := pl.decoders.Load(t); ok {
		return d.(*lazyDecoder)
	}
	d, _ := pl.decoders.LoadOrStore(t, &lazyDecoder{of: pl, t: t})
	return d.(*lazyDecoder)
}

func (d *lazyDecoder) read(s *source, p unsafe.Pointer) bool {
	d.once.Do(func() { d.fn = d.of.newStructDecoder(d.t) })
	return d.fn(s, p)
}

var (
	unmarshalerType     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

func customDecoding(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType)
}

func (pl *plans) newDecoder(t reflect.Type) decoder {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return readTime
	case reflect.TypeFor[metav1.MicroTime]():
		return readMicroTime
	case reflect.TypeFor[resource.Quantity]():
		return readQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		return readIntOrString
	case reflect.TypeFor[metav1.FieldsV1]():
		return func(s *source, p unsafe.Pointer) bool { return s.raw(&(*metav1.FieldsV1)(p).Raw) }
	case reflect.TypeFor[runtime.RawExtension]():
		return func(s *source, p unsafe.Pointer) bool { return s.raw(&(*runtime.RawExtension)(p).Raw) }
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return readPlainJSON
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		return readSchemaOrList
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():
		return readSchemaOrBool
	}
	if customDecoding(t) && t.Kind() != reflect.Pointer {
		return pl.otherDecoder(t)
	}
	switch t.Kind() {
	case reflect.String:
		return readString
	case reflect.Bool:
		return readBool
	case reflect.Int32:
		return func(s *source, p unsafe.Pointer) bool {
			n, ok := s.integer(32)
			if ok {
				*(*int32)(p) = int32(n)
			}
			return ok
		}
	case reflect.Int64:
		return func(s *source, p unsafe.Pointer) bool {
			n, ok := s.integer(64)
			if ok {
				*(*int64)(p) = n
			}
			return ok
		}
	case reflect.Struct:
		return pl.structDecoder(t).read
	case reflect.Pointer:
		to := t.Elem()
		elem := pl.newDecoder(to)
		return func(s *source, p unsafe.Pointer) bool {
			if s.null() {
				return true
			}
			target := reflect.New(to).UnsafePointer()
			*(*unsafe.Pointer)(p) = target
			return elem(s, target)
		}
	case reflect.Slice:
		return pl.newSliceDecoder(t)
	case reflect.Map:
		return pl.newMapDecoder(t)
	}
	return pl.otherDecoder(t)
}

// otherDecoder hands the raw value to the exact decoder.
func (pl *plans) otherDecoder(t reflect.Type) decoder {
	return func(s *source, p unsafe.Pointer) bool {
		start := s.space()
		if !s.skip() {
			return false
		}
		problems, err := exact.UnmarshalStrict(pl.marked([]byte(s.text[start:s.at]), t), reflect.NewAt(t, p).Interface())
		return err == nil && len(problems) == 0
	}
}

func (pl *plans) newSliceDecoder(t reflect.Type) decoder {
	if t.Elem().Kind() == reflect.Uint8 {
		if customDecoding(t.Elem()) {
			return pl.otherDecoder(t)
		}
		return func(s *source, p unsafe.Pointer) bool { return s.base64((*[]byte)(p)) }
	}
	elem, size := pl.newDecoder(t.Elem()), t.Elem().Size()
	most := int32(max(1, roomAtOnce/max(1, size)))
	var usual atomic.Int32 // how long the list was last time: the next one begins with room for as many
	return func(s *source, p unsafe.Pointer) bool {
		if s.null() {
			return true
		}
		var list reflect.Value
		n, room, data := 0, 0, unsafe.Pointer(nil)
		before := usual.Load()
		if !s.array(func() bool {
			if n == room {
				room = max(2*n, int(min(before, most)), 1)
				longer := reflect.MakeSlice(t, room, room)
				if n > 0 {
					reflect.Copy(longer, list)
				}
				list, data = longer, longer.UnsafePointer()
			}
			n++
			return elem(s, unsafe.Add(data, uintptr(n-1)*size))
		}) {
			return false
		}
		if n == 0 {
			data = reflect.MakeSlice(t, 0, 0).UnsafePointer() // [] is not null
		} else if int32(n) != before {
			usual.Store(int32(n))
		}
		*(*sliceHeader)(p) = sliceHeader{data, n, room}
		return true
	}
}

// roomAtOnce limits the initial allocation for a list, in bytes.
const roomAtOnce = 1 << 10

func (pl *plans) newMapDecoder(t reflect.Type) decoder {
	if t.Key().Kind() != reflect.String || customDecoding(t.Key()) {
		return pl.otherDecoder(t)
	}
	switch elem := t.Elem(); {
	case elem.Kind() == reflect.String && !customDecoding(elem):
		return func(s *source, p unsafe.Pointer) bool {
			return readMap(s, (*map[string]string)(p), func(v *string) bool { return readString(s, unsafe.Pointer(v)) })
		}
	case elem == reflect.TypeFor[resource.Quantity]():
		return func(s *source, p unsafe.Pointer) bool {
			return readMap(s, (*map[string]resource.Quantity)(p), func(v *resource.Quantity) bool { return readQuantity(s, unsafe.Pointer(v)) })
		}
	case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Uint8 && !customDecoding(elem) && !customDecoding(elem.Elem()):
		return func(s *source, p unsafe.Pointer) bool { return readMap(s, (*map[string][]byte)(p), s.base64) }
	case t == reflect.TypeFor[schemas]():
		return readSchemas
	case elem.Kind() == reflect.Struct && !customDecoding(elem):
		return pl.mapOfStructs(t)
	}
	return pl.otherDecoder(t)
}

func readMap[V any](s *source, p *map[string]V, value func(*V) bool) bool {
	if s.null() {
		return true
	}
	m := map[string]V{}
	*p = m
	return s.object(func(name string) bool {
		var v V
		if _, again := m[name]; again || !value(&v) {
			return false
		}
		m[name] = v
		return true
	})
}

type fieldDecoder struct {
	name   string
	t      reflect.Type
	offset uintptr
	value  decoder

	optional bool // with a view: omitted if empty, unless the view has null
	null     bool // the view has null
}

// looksAhead is the number of fields that are compared with a name before a map look-up.
const looksAhead = 8

func (pl *plans) newStructDecoder(t reflect.Type) decoder {
	if customDecoding(t) {
		return pl.otherDecoder(t)
	}
	fields, ok := pl.decodedFields(t, 0)
	if !ok || len(fields) > 128 {
		return pl.otherDecoder(t)
	}
	index := make(map[string]int, len(fields))
	for i, f := range fields {
		if _, again := index[f.name]; again {
			return pl.otherDecoder(t) // which one wins depends on depth and tags
		}
		index[f.name] = i
	}
	return func(s *source, p unsafe.Pointer) bool {
		if s.null() {
			return true
		}
		var seen [2]uint64
		next := 0
		return s.object(func(name string) bool {
			// Encoders write fields in their order, leaving some out.
			i, end := next, min(next+looksAhead, len(fields))
			for i < end && fields[i].name != name {
				i++
			}
			if i == end {
				var known bool
				if i, known = index[name]; !known {
					return false
				}
			}
			next = i + 1
			if bit := uint64(1) << (i % 64); seen[i/64]&bit == 0 {
				seen[i/64] |= bit
				return fields[i].value(s, unsafe.Add(p, fields[i].offset))
			}
			return false
		})
	}
}

// decodedFields is structFields for decoding.
func (pl *plans) decodedFields(t reflect.Type, base uintptr) ([]fieldDecoder, bool) {
	var out []fieldDecoder
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-":
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || customDecoding(f.Type) {
				return nil, false
			}
			inner, ok := pl.decodedFields(f.Type, base+f.Offset)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
			continue
		case !f.IsExported():
			continue
		case slices.Contains(strings.Split(options, ","), "string") || !plain(name):
			return nil, false
		}
		name = cmp.Or(name, f.Name)
		if pl.view.Lacks(t, name) {
			continue
		}
		optional := pl.view != nil && (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"))
		out = append(out, fieldDecoder{name, f.Type, base + f.Offset, pl.newDecoder(f.Type), optional, pl.view.Nulls(t, name)})
	}
	return out, true
}
