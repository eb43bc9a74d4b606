package protobuf

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Some fields hold JSON, which a message carries as arbitrary bytes. Invalid JSON could not be written as
// JSON later, and comparing objects, as field ownership does, would panic. So it is refused, as in all other
// forms. Validation handles empty bytes.

var embedding sync.Map // reflect.Type -> whether a value of it can hold JSON

var embedded = map[reflect.Type]bool{
	reflect.TypeFor[runtime.RawExtension](): true,
	reflect.TypeFor[apiextensionsv1.JSON](): true,
}

// checkEmbedded refuses an object that holds bytes for JSON that are none.
func checkEmbedded(obj runtime.Object) error {
	v := reflect.ValueOf(obj)
	if !canEmbed(v.Type()) {
		return nil
	}
	return walkEmbedded(v)
}

func canEmbed(t reflect.Type) bool {
	if known, ok := embedding.Load(t); ok {
		return known.(bool)
	}
	seen := map[reflect.Type]bool{}
	var reaches func(reflect.Type) bool
	reaches = func(t reflect.Type) bool {
		if embedded[t] {
			return true
		}
		if seen[t] {
			return false
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return reaches(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if t.Field(i).IsExported() && reaches(t.Field(i).Type) {
					return true
				}
			}
		}
		return false
	}
	found := reaches(t)
	embedding.Store(t, found)
	return found
}

// walkEmbedded walks a decoded message: it is a tree, and no deeper than the message was.
func walkEmbedded(v reflect.Value) error {
	if embedded[v.Type()] {
		if raw := v.FieldByName("Raw").Bytes(); len(raw) > 0 && !stdjson.Valid(raw) {
			return fmt.Errorf("a field of type %s holds no valid JSON", v.Type().Name())
		}
		return nil
	}
	if !canEmbed(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return walkEmbedded(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := walkEmbedded(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := walkEmbedded(it.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := walkEmbedded(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
