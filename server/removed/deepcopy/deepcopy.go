// Package deepcopy copies objects of the API types below package removed by reflection: few clusters have such objects.
package deepcopy

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object returns a copy of an object, without shared memory that can change; nil for nil.
func Object[T any, P interface {
	*T
	runtime.Object
}](from P) runtime.Object {
	if from == nil {
		return nil
	}
	out := P(new(T))
	set(reflect.ValueOf(out).Elem(), reflect.ValueOf(from).Elem())
	return out
}

// set copies from into to, which is zero or equal. Structs whose fields are not exported, such as times, do not change, so their
// parts may be shared.
func set(to, from reflect.Value) {
	to.Set(from)
	switch from.Kind() {
	case reflect.Struct:
		if q, ok := from.Interface().(resource.Quantity); ok { // which changes in place
			to.Set(reflect.ValueOf(q.DeepCopy()))
			return
		}
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				set(to.Field(i), from.Field(i))
			}
		}
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			set(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				set(to.Index(i), from.Index(i))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
			for entry := from.MapRange(); entry.Next(); {
				value := reflect.New(from.Type().Elem()).Elem()
				set(value, entry.Value())
				to.SetMapIndex(entry.Key(), value)
			}
		}
	case reflect.Interface:
		if obj, ok := from.Interface().(runtime.Object); ok {
			to.Set(reflect.ValueOf(obj.DeepCopyObject()))
		}
	}
}
