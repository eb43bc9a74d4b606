package kinds

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Different converts values of types that two versions declare differently under the same field. It
// reports whether it knew the types.
type Different func(to, from reflect.Value) bool

// Conversion makes the functions that convert objects of a version to the stored version, and back. fresh
// makes an empty object of the version, freshStored one of the stored version. Fields have the same names in both,
// and types of the same form; different, which may be nil, handles the exceptions. A field that only
// one version has is left out.
func Conversion(fresh, freshStored func() Object, different Different) (toStorage, fromStorage func(Object) (Object, error)) {
	convert := func(into func() Object) func(Object) (Object, error) {
		return func(obj Object) (Object, error) {
			out := into()
			if err := different.Convert(reflect.ValueOf(out).Elem(), reflect.ValueOf(obj).Elem()); err != nil {
				return nil, fmt.Errorf("converting %T to %T: %w", obj, out, err)
			}
			out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			return out, nil
		}
	}
	return convert(freshStored), convert(fresh)
}

// ConvertValue makes a value of a type from one of the same form in another version of the API, with
// which it may share memory. It panics for types of different forms.
func ConvertValue[To any](from any) (to To) {
	if err := Different(nil).Convert(reflect.ValueOf(&to).Elem(), reflect.ValueOf(from)); err != nil {
		panic(fmt.Sprintf("converting %T to %T: %v", from, to, err))
	}
	return to
}

// Convert sets a value to one of the other version, with which it may share memory.
func (d Different) Convert(to, from reflect.Value) error {
	switch {
	case to.Type() == from.Type():
		to.Set(from)
		return nil
	case d != nil && d(to, from):
		return nil
	case to.Kind() != from.Kind():
		return fmt.Errorf("%s is no %s", from.Type(), to.Type())
	}
	switch to.Kind() {
	case reflect.Struct:
		for i := range to.NumField() {
			if field := from.FieldByName(to.Type().Field(i).Name); field.IsValid() {
				if err := d.Convert(to.Field(i), field); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.Pointer:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return d.Convert(to.Elem(), from.Elem())
	case reflect.Slice:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := d.Convert(to.Index(i), from.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return d.convertMap(to, from)
	}
	if !from.CanConvert(to.Type()) {
		return fmt.Errorf("%s is no %s", from.Type(), to.Type())
	}
	to.Set(from.Convert(to.Type()))
	return nil
}

func (d Different) convertMap(to, from reflect.Value) error {
	if from.IsNil() {
		return nil
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	for it := from.MapRange(); it.Next(); {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if err := d.Convert(key, it.Key()); err != nil {
			return err
		}
		if err := d.Convert(value, it.Value()); err != nil {
			return err
		}
		to.SetMapIndex(key, value)
	}
	return nil
}
