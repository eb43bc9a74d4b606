package json

import (
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/yield"
)

// The encoder is encoding/json for the types of API objects, prepared once for each type. encoding/json
// itself encodes everything for which it has no fast path. Structs and single values have files of their own.

// encoder appends the value that p points to.
type encoder func(dst []byte, p unsafe.Pointer) ([]byte, error)

// lazyEncoder breaks the circle of types that contain themselves.
type lazyEncoder struct {
	of   *plans
	once sync.Once
	t    reflect.Type
	fn   encoder
}

func (pl *plans) structEncoder(t reflect.Type) *lazyEncoder {
	if e, ok := pl.encoders.Load(t); ok {
		return e.(*lazyEncoder)
	}
	e, _ := pl.encoders.LoadOrStore(t, &lazyEncoder{of: pl, t: t})
	return e.(*lazyEncoder)
}

func (e *lazyEncoder) append(dst []byte, p unsafe.Pointer) ([]byte, error) {
	e.once.Do(func() { e.fn = e.of.newStructEncoder(e.t) })
	return e.fn(dst, p)
}

// appendStruct appends the struct to which a pointer points.
func (pl *plans) appendStruct(dst []byte, v reflect.Value) ([]byte, error) {
	return pl.structEncoder(v.Type().Elem()).append(dst, v.UnsafePointer())
}

var (
	marshalerType     = reflect.TypeFor[stdjson.Marshaler]()
	textMarshalerType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

func custom(t reflect.Type) bool {
	return t.Implements(marshalerType) || t.Implements(textMarshalerType) ||
		reflect.PointerTo(t).Implements(marshalerType) || reflect.PointerTo(t).Implements(textMarshalerType)
}

func (pl *plans) newEncoder(t reflect.Type) encoder {
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
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return appendPlainJSON
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		return appendSchemaOrList
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():
		return appendSchemaOrBool
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
		return pl.structEncoder(t).append
	case reflect.Pointer:
		return pl.pointerEncoder(t)
	case reflect.Slice:
		return pl.sliceEncoder(t)
	case reflect.Map:
		return pl.mapEncoder(t)
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

func (pl *plans) pointerEncoder(t reflect.Type) encoder {
	elem := pl.newEncoder(t.Elem())
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

func (pl *plans) sliceEncoder(t reflect.Type) encoder {
	if t.Elem().Kind() == reflect.Uint8 && !custom(t.Elem()) {
		return appendBytes
	}
	elem, size := pl.newEncoder(t.Elem()), t.Elem().Size()
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
			before := len(dst)
			if dst, err = elem(dst, unsafe.Add(s.data, uintptr(i)*size)); err != nil {
				return dst, err
			}
			yield.Within(before, len(dst))
		}
		return append(dst, ']'), nil
	}
}

func (pl *plans) mapEncoder(t reflect.Type) encoder {
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
	case t == reflect.TypeFor[schemas]():
		return appendSchemas
	case elem.Kind() == reflect.Struct && !custom(elem):
		return pl.appendMapOfStructs(t)
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
	sortKeys(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		v, before := m[k], len(dst)
		var err error
		if dst, err = value(dst, &v); err != nil {
			return dst, err
		}
		yield.Within(before, len(dst))
	}
	return append(dst, '}'), nil
}

const (
	manyKeys     = 4096
	compareSteps = 4096 // comparisons of keys between two yields
)

// sortKeys sorts the keys of a map. Many take tens of milliseconds.
func sortKeys(keys []string) {
	if len(keys) < manyKeys {
		slices.Sort(keys)
		return
	}
	n := 0
	slices.SortFunc(keys, func(a, b string) int {
		if n++; n%compareSteps == 0 {
			yield.Now()
		}
		return strings.Compare(a, b)
	})
}
