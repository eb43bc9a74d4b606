package protobuf

import (
	"encoding/binary"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/codecs/quantities"
)

var quantityType = reflect.TypeFor[resource.Quantity]()

// checkQuantities looks for quantities that would take too long to read, before the
// generated decoder meets them. Most messages cannot hold one, and are not walked.
func checkQuantities(data []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !quantities.Holds(t) || !quantities.Suspect(data) {
		return nil
	}
	return walkMessage(data, t, "")
}

// walkMessage follows the fields of a message that can hold quantities. It ignores invalid data, which the
// decoder refuses.
func walkMessage(data []byte, t reflect.Type, path string) error {
	fields := fieldsOf(t)
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return nil
		}
		data = rest
		if field == nil || tag&7 != 2 {
			continue
		}
		if t == quantityType {
			if tag>>3 == 1 && !quantities.Fits(field) {
				return &quantities.Error{Path: path}
			}
			continue
		}
		f, known := fields[tag>>3]
		if !known {
			continue
		}
		if err := walkField(field, f.of, strings.TrimPrefix(path+"."+f.name, ".")); err != nil {
			return err
		}
	}
	return nil
}

func walkField(data []byte, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case !quantities.Holds(t):
		return nil
	case t.Kind() == reflect.Struct:
		return walkMessage(data, t, path)
	case t.Kind() == reflect.Map: // an entry is a message of key and value
		for len(data) > 0 {
			tag, n := binary.Uvarint(data)
			field, rest, ok := next(data)
			if n <= 0 || !ok {
				return nil
			}
			data = rest
			if tag>>3 == 2 && tag&7 == 2 {
				if err := walkField(field, t.Elem(), path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
