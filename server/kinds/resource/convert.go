package resource

import (
	"fmt"
	"reflect"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds"
)

// Conversion makes the functions that convert objects of v1alpha3, of which fresh makes an
// empty one, to the stored version v1beta1, of which freshStored does, and back. The two
// versions have the same fields, but for the capacity of a device, which is a quantity in
// v1alpha3 and an object around one in v1beta1, and for what newer releases of k8s.io/api
// have added to v1beta1, which is left out.
func Conversion(fresh, freshStored func() kinds.Object) (toStorage, fromStorage func(kinds.Object) (kinds.Object, error)) {
	convert := func(into func() kinds.Object) func(kinds.Object) (kinds.Object, error) {
		return func(obj kinds.Object) (kinds.Object, error) {
			out := into()
			if err := mirror(reflect.ValueOf(out).Elem(), reflect.ValueOf(obj).Elem()); err != nil {
				return nil, fmt.Errorf("converting %T to %T: %w", obj, out, err)
			}
			return out, nil
		}
	}
	return convert(freshStored), convert(fresh)
}

var (
	quantity = reflect.TypeFor[apiresource.Quantity]()
	capacity = reflect.TypeFor[resourcev1beta1.DeviceCapacity]()
)

// mirror sets a value to one of the other version, which it may share memory with: fields
// have the same names, and what differs is the packages of types.
func mirror(to, from reflect.Value) error {
	switch {
	case to.Type() == from.Type():
		to.Set(from)
		return nil
	case to.Type() == capacity && from.Type() == quantity:
		to.FieldByName("Value").Set(from)
		return nil
	case to.Type() == quantity && from.Type() == capacity:
		to.Set(from.FieldByName("Value"))
		return nil
	case to.Kind() != from.Kind():
		return fmt.Errorf("%s is no %s", from.Type(), to.Type())
	}
	switch to.Kind() {
	case reflect.Struct:
		for i := range to.NumField() {
			field := from.FieldByName(to.Type().Field(i).Name)
			if !field.IsValid() {
				continue
			}
			if err := mirror(to.Field(i), field); err != nil {
				return err
			}
		}
		return nil
	case reflect.Pointer:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return mirror(to.Elem(), from.Elem())
	case reflect.Slice:
		if from.IsNil() {
			return nil
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := mirror(to.Index(i), from.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return mirrorMap(to, from)
	}
	if !from.CanConvert(to.Type()) {
		return fmt.Errorf("%s is no %s", from.Type(), to.Type())
	}
	to.Set(from.Convert(to.Type()))
	return nil
}

func mirrorMap(to, from reflect.Value) error {
	if from.IsNil() {
		return nil
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	for it := from.MapRange(); it.Next(); {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if err := mirror(key, it.Key()); err != nil {
			return err
		}
		if err := mirror(value, it.Value()); err != nil {
			return err
		}
		to.SetMapIndex(key, value)
	}
	return nil
}
