package json

import (
	"reflect"
	"slices"
	"sync"
	"unsafe"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Schemas of custom resources nest through types with their own encoders, each of which processes everything
// below it again: a field at the twentieth level was read twenty times. This code handles them directly.

// readSchemaOrList reads items: a schema, or a list of them.
func readSchemaOrList(s *source, p unsafe.Pointer) bool {
	v := (*apiextensionsv1.JSONSchemaPropsOrArray)(p)
	switch s.peek() {
	case '{':
		v.Schema = &apiextensionsv1.JSONSchemaProps{}
		return schemaDecoder().read(s, unsafe.Pointer(v.Schema))
	case '[':
		v.JSONSchemas = []apiextensionsv1.JSONSchemaProps{}
		return s.array(func() bool {
			var one apiextensionsv1.JSONSchemaProps
			ok := schemaDecoder().read(s, unsafe.Pointer(&one))
			v.JSONSchemas = append(v.JSONSchemas, one)
			return ok
		})
	}
	return false
}

// readSchemaOrBool reads additionalProperties: a schema, or a boolean.
func readSchemaOrBool(s *source, p unsafe.Pointer) bool {
	v := (*apiextensionsv1.JSONSchemaPropsOrBool)(p)
	if s.peek() != '{' {
		return readBool(s, unsafe.Pointer(&v.Allows))
	}
	v.Allows, v.Schema = true, &apiextensionsv1.JSONSchemaProps{}
	return schemaDecoder().read(s, unsafe.Pointer(v.Schema))
}

// readPlainJSON keeps a value as it is written.
func readPlainJSON(s *source, p unsafe.Pointer) bool { return s.raw(&(*apiextensionsv1.JSON)(p).Raw) }

func schemaDecoder() *lazyDecoder {
	return all.structDecoder(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
}

func appendSchemaOrList(dst []byte, p unsafe.Pointer) ([]byte, error) {
	v := (*apiextensionsv1.JSONSchemaPropsOrArray)(p)
	if len(v.JSONSchemas) == 0 {
		return appendSchema(dst, v.Schema)
	}
	for i := range v.JSONSchemas {
		dst = append(dst, "[,"[min(i, 1)])
		var err error
		if dst, err = appendSchema(dst, &v.JSONSchemas[i]); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendSchemaOrBool(dst []byte, p unsafe.Pointer) ([]byte, error) {
	v := (*apiextensionsv1.JSONSchemaPropsOrBool)(p)
	switch {
	case v.Schema != nil:
		return appendSchema(dst, v.Schema)
	case v.Allows:
		return append(dst, "true"...), nil
	}
	return append(dst, "false"...), nil
}

func appendPlainJSON(dst []byte, p unsafe.Pointer) ([]byte, error) {
	raw := (*apiextensionsv1.JSON)(p).Raw
	switch {
	case len(raw) == 0:
		return append(dst, "null"...), nil
	case compact(raw):
		return append(dst, raw...), nil
	}
	return stdEncoder(reflect.TypeFor[apiextensionsv1.JSON]())(dst, p)
}

func appendSchema(dst []byte, s *apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	if s == nil {
		return append(dst, "null"...), nil
	}
	return all.structEncoder(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()).append(dst, unsafe.Pointer(s))
}

// schemas is the type that makes up most of a definition. Reflection copies each value that it reads from a
// map of large structs.
type schemas = map[string]apiextensionsv1.JSONSchemaProps

// schemaRoom has room for a schema in progress; it is empty when unused.
var schemaRoom = sync.Pool{New: func() any { return new(apiextensionsv1.JSONSchemaProps) }}

func leaveRoom(v *apiextensionsv1.JSONSchemaProps) {
	*v = apiextensionsv1.JSONSchemaProps{}
	schemaRoom.Put(v)
}

// readSchemas is mapOfStructs for schemas.
func readSchemas(s *source, p unsafe.Pointer) bool {
	if s.null() {
		return true
	}
	m, value := schemas{}, schemaDecoder()
	*(*schemas)(p) = m
	v := schemaRoom.Get().(*apiextensionsv1.JSONSchemaProps)
	defer leaveRoom(v)
	return s.object(func(name string) bool {
		*v = apiextensionsv1.JSONSchemaProps{}
		if _, twice := m[name]; twice || !value.read(s, unsafe.Pointer(v)) {
			return false
		}
		m[name] = *v
		return true
	})
}

// appendSchemas is appendMapOfStructs for schemas.
func appendSchemas(dst []byte, p unsafe.Pointer) (_ []byte, err error) {
	m := *(*schemas)(p)
	if m == nil {
		return append(dst, "null"...), nil
	}
	var some [32]string
	keys := some[:0]
	for name := range m {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	v := schemaRoom.Get().(*apiextensionsv1.JSONSchemaProps)
	defer leaveRoom(v)
	dst = append(dst, '{')
	for i, name := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		*v = m[name]
		if dst, err = appendSchema(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// mapOfStructs reads objects whose values are structs.
func (pl *plans) mapOfStructs(t reflect.Type) decoder {
	value := pl.structDecoder(t.Elem())
	return func(s *source, p unsafe.Pointer) bool {
		if s.null() {
			return true
		}
		m, key := reflect.MakeMap(t), reflect.New(t.Key()).Elem()
		reflect.NewAt(t, p).Elem().Set(m)
		v := reflect.New(t.Elem())
		return s.object(func(name string) bool {
			v.Elem().SetZero()
			key.SetString(name)
			if m.MapIndex(key).IsValid() || !value.read(s, v.UnsafePointer()) {
				return false
			}
			m.SetMapIndex(key, v.Elem())
			return true
		})
	}
}

// appendMapOfStructs encodes the maps of mapOfStructs, in the order of the keys.
func (pl *plans) appendMapOfStructs(t reflect.Type) encoder {
	value := pl.structEncoder(t.Elem())
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		m := reflect.NewAt(t, p).Elem()
		if m.IsNil() {
			return append(dst, "null"...), nil
		}
		keys := make([]string, 0, m.Len())
		key, v := reflect.New(t.Key()).Elem(), reflect.New(t.Elem())
		for iter := m.MapRange(); iter.Next(); {
			key.SetIterKey(iter)
			keys = append(keys, key.String())
		}
		slices.Sort(keys)
		dst = append(dst, '{')
		for i, name := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			key.SetString(name)
			v.Elem().Set(m.MapIndex(key))
			var err error
			if dst, err = value.append(dst, v.UnsafePointer()); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}
