package kinds

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

// Through makes a strategy for objects in the stored version from one for those in another version, which has all that
// the stored one has. It panics for versions that differ in more than different knows.
func Through[T any, P interface {
	*T
	Object
}](different Different, s Strategy) Strategy {
	convert := func(to, from reflect.Value) {
		if err := different.Convert(to, from); err != nil {
			panic(fmt.Sprintf("converting %s to %s: %v", from.Type(), to.Type(), err))
		}
	}
	newer := func(obj Object) Object {
		if obj == nil {
			return nil
		}
		out := P(new(T))
		convert(reflect.ValueOf(out).Elem(), reflect.ValueOf(obj).Elem())
		return out
	}
	change := func(obj Object, by func(Object)) {
		changed := newer(obj)
		by(changed)
		out := reflect.New(reflect.TypeOf(obj).Elem())
		convert(out.Elem(), reflect.ValueOf(changed).Elem())
		reflect.ValueOf(obj).Elem().Set(out.Elem())
	}
	if f := s.Default; f != nil {
		s.Default = func(obj Object) { change(obj, f) }
	}
	if f := s.PrepareForCreate; f != nil {
		s.PrepareForCreate = func(ctx context.Context, obj Object) {
			change(obj, func(obj Object) { f(ctx, obj) })
		}
	}
	if f := s.PrepareForUpdate; f != nil {
		s.PrepareForUpdate = func(ctx context.Context, obj, old Object) {
			change(obj, func(obj Object) { f(ctx, obj, newer(old)) })
		}
	}
	if f := s.Validate; f != nil {
		s.Validate = func(ctx context.Context, obj Object) field.ErrorList { return f(ctx, newer(obj)) }
	}
	if f := s.ValidateUpdate; f != nil {
		s.ValidateUpdate = func(ctx context.Context, obj, old Object) field.ErrorList {
			return f(ctx, newer(obj), newer(old))
		}
	}
	if f := s.Rights; f != nil {
		s.Rights = func(obj, old Object, verb, node string) []Right { return f(newer(obj), newer(old), verb, node) }
	}
	if f := s.NeedsLabel; f != nil {
		s.NeedsLabel = func(obj, old Object) (*field.Path, string, string) { return f(newer(obj), newer(old)) }
	}
	if f := s.Warnings; f != nil {
		s.Warnings = func(ctx context.Context, obj, old Object) []string { return f(ctx, newer(obj), newer(old)) }
	}
	if s.Status != nil {
		s.Status = new(Through[T, P](different, *s.Status))
	}
	return s
}
