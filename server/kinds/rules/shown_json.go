package rules

import (
	"encoding/json"
	"errors"
	"reflect"
	"sort"
	"strings"

	"github.com/rowlock/rowlock/server/removed"
)

// MarshalJSON spells the value as later releases than 1.32 do: the types of API groups with the Go names
// of all their fields, as the internal types of a stock server have no JSON names, and all others as usual.
func (s shown) MarshalJSON() ([]byte, error) { return appendJSON(nil, s.value, 0) }

var errDeep = errors.New("the value is nested too deeply")

func appendJSON(b []byte, v reflect.Value, depth int) ([]byte, error) {
	switch {
	case depth > maxDepth:
		return nil, errDeep
	case !v.IsValid():
		return append(b, "null"...), nil
	case v.CanInterface():
		if _, ok := v.Interface().(json.Marshaler); ok && v.Kind() != reflect.Pointer {
			return appendOwn(b, v)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return appendJSON(b, v.Elem(), depth+1)
	case reflect.Struct:
		if !ofGroup(v.Type()) {
			return appendOwn(b, v)
		}
		b = append(b, '{')
		return appendFields(b, shownFields(v), depth, false)
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return appendOwn(b, v)
		}
		var err error
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, v.Index(i), depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String {
			return appendOwn(b, v)
		}
		return appendMap(b, v, depth)
	}
	return appendOwn(b, v)
}

// appendFields writes the fields of a struct and the closing brace, those of embedded structs as its own.
func appendFields(b []byte, all []member, depth int, within bool) ([]byte, error) {
	var err error
	for _, f := range all {
		if !f.IsExported() {
			continue
		}
		if last := b[len(b)-1]; last != '{' && last != ',' {
			b = append(b, ',')
		}
		switch {
		case f.Anonymous && ofGroup(f.Type):
			if b, err = appendFields(b, shownFields(f.value), depth+1, true); err != nil {
				return nil, err
			}
		case f.Anonymous && f.Type.Kind() == reflect.Struct: // such as ObjectMeta
			own, err := appendOwn(nil, f.value)
			if err != nil {
				return nil, err
			}
			b = append(b, own[1:len(own)-1]...)
			if len(own) == 2 && b[len(b)-1] == ',' {
				b = b[:len(b)-1]
			}
		default:
			b = append(append(append(b, '"'), f.Name...), '"', ':')
			if f.all != nil {
				b, err = appendFields(append(b, '{'), f.all, depth+1, false)
			} else {
				b, err = appendJSON(b, f.value, depth+1)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if within {
		return b, nil
	}
	return append(b, '}'), nil
}

func appendMap(b []byte, v reflect.Value, depth int) ([]byte, error) {
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(key.String())
		if err != nil {
			return nil, err
		}
		b = append(append(b, name...), ':')
		if b, err = appendJSON(b, v.MapIndex(key), depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendOwn writes a value as its type has it.
func appendOwn(b []byte, v reflect.Value) ([]byte, error) {
	own, err := json.Marshal(v.Interface())
	return append(b, own...), err
}

// ofGroup reports whether a type is a struct of an API group.
func ofGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(removed.PackagePath(t.PkgPath()), "k8s.io/api/")
}
