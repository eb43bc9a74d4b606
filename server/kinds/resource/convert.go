package resource

import (
	"fmt"
	"reflect"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds"
)

var (
	quantity = reflect.TypeFor[apiresource.Quantity]()
	capacity = reflect.TypeFor[resourcev1beta1.DeviceCapacity]()

	request    = reflect.TypeFor[resourcev1beta1.DeviceRequest]()
	deviceType = reflect.TypeFor[resourcev1beta1.Device]()
	newRequest = reflect.TypeFor[resourcev1.DeviceRequest]()
	newDevice  = reflect.TypeFor[resourcev1.Device]()
	sliceSpec  = reflect.TypeFor[resourcev1beta1.ResourceSliceSpec]()
	newSpec    = reflect.TypeFor[resourcev1.ResourceSliceSpec]()
)

// Different converts the differences between versions (see kinds.Conversion): the capacity of a device is a
// quantity in v1alpha3 and an object with a quantity in the others; v1beta1 has the fields of a request that
// newer versions have in its part "exactly", and has the fields of a device in its part "basic"; fields of a
// slice about nodes are pointers in newer versions.
func Different(to, from reflect.Value) bool {
	switch {
	case to.Type() == capacity && from.Type() == quantity:
		to.FieldByName("Value").Set(from)
	case to.Type() == quantity && from.Type() == capacity:
		to.Set(from.FieldByName("Value"))
	case to.Type() == request && from.Type() == newRequest:
		unfold(to, from, "Exactly")
	case from.Type() == request && to.Type() == newRequest:
		fold(to, from, "Exactly")
	case to.Type() == sliceSpec && from.Type() == newSpec && marksOf(from) != "":
		convertFields(to, from)
		to.FieldByName("NodeName").SetString(marksOf(from) + to.FieldByName("NodeName").String())
	case from.Type() == sliceSpec && to.Type() == newSpec && strings.HasPrefix(from.FieldByName("NodeName").String(), mark):
		convertFields(to, from)
		readMarks(to, from.FieldByName("NodeName").String())
	case to.Type() == deviceType && from.Type() == newDevice:
		fold(to, from, "Basic")
	case from.Type() == deviceType && to.Type() == newDevice:
		unfold(to, from, "Basic")
	case to.Kind() == reflect.Pointer && to.Type().Elem() == from.Type():
		if !from.IsZero() {
			to.Set(reflect.New(from.Type()))
			to.Elem().Set(from)
		}
	case from.Kind() == reflect.Pointer && from.Type().Elem() == to.Type():
		if !from.IsNil() {
			to.Set(from.Elem())
		}
	default:
		return false
	}
	return true
}

// Requested is Different for objects from clients: an exact request gets the defaults of newer versions,
// which cannot be distinguished from an absent one when it is folded.
func Requested(to, from reflect.Value) bool {
	known := Different(to, from)
	if known && to.Type() == request && !from.FieldByName("Exactly").IsNil() {
		r := to.Addr().Interface().(*resourcev1beta1.DeviceRequest)
		defaultMode(&r.AllocationMode, &r.Count)
	}
	return known
}

// bare is Different for rules that require the part "basic" of a device: one without it has an empty node name in v1,
// a field that no device has in releases with these rules.
func bare(to, from reflect.Value) bool {
	switch d := to.Addr().Interface().(type) {
	case *resourcev1.Device:
		if old := from.Interface().(resourcev1beta1.Device); old.Basic == nil {
			d.Name, d.NodeName = old.Name, new(string)
			return true
		}
	case *resourcev1beta1.Device:
		if newer := from.Interface().(resourcev1.Device); newer.NodeName != nil {
			d.Name = newer.Name
			return true
		}
	}
	return Different(to, from)
}

// convert makes a value of another version. Versions that differ in more than is known are a mistake in this package.
func convert(different kinds.Different, to, from reflect.Value) {
	if err := different.Convert(to, from); err != nil {
		panic(fmt.Sprintf("converting %s to %s: %v", from.Type(), to.Type(), err))
	}
}

// stored makes a strategy of the rules for objects in v1beta1 from that for objects in v1.
func stored[T any, P interface {
	*T
	kinds.Object
}](b *validator, s kinds.Strategy) kinds.Strategy {
	if b.later {
		return kinds.Through[T, P](Different, s)
	}
	return kinds.Through[T, P](bare, s)
}

// unfold sets a struct from one that has some of its fields in a part.
func unfold(to, from reflect.Value, part string) {
	inner := from.FieldByName(part)
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		field := from.FieldByName(name)
		if !field.IsValid() && !inner.IsNil() {
			field = inner.Elem().FieldByName(name)
		}
		if field.IsValid() {
			convert(Different, to.Field(i), field)
		}
	}
}

// fold sets a struct that has some fields of another in a part. Of a request the part is there if any of
// its fields is; of a device it always is.
func fold(to, from reflect.Value, part string) {
	inner := reflect.New(to.FieldByName(part).Type().Elem())
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		field := to.FieldByName(name)
		if !field.IsValid() {
			field = inner.Elem().FieldByName(name)
		}
		if field.IsValid() {
			convert(Different, field, from.Field(i))
		}
	}
	if part == "Basic" || !inner.Elem().IsZero() {
		to.FieldByName(part).Set(inner)
	}
}

// A slice of a newer version may have a node with an empty name, or not be for all nodes, which is
// invalid. v1beta1 cannot express that: there the name of the node begins with marks that no valid name has.
const (
	mark        = "\x00"
	emptyNode   = mark + "e"
	notAllNodes = mark + "a"
)

// marksOf returns the marks for the spec of a slice in a newer version.
func marksOf(spec reflect.Value) string {
	name, all, marks := spec.FieldByName("NodeName"), spec.FieldByName("AllNodes"), ""
	if !name.IsNil() && name.Elem().String() == "" {
		marks = emptyNode
	}
	if !all.IsNil() && !all.Elem().Bool() {
		marks += notAllNodes
	}
	return marks
}

// readMarks sets the fields of marked names in the spec of a newer version.
func readMarks(spec reflect.Value, text string) {
	text, empty := strings.CutPrefix(text, emptyNode)
	text, notAll := strings.CutPrefix(text, notAllNodes)
	spec.FieldByName("NodeName").SetZero()
	if empty || text != "" {
		spec.FieldByName("NodeName").Set(reflect.ValueOf(&text))
	}
	if notAll {
		spec.FieldByName("AllNodes").Set(reflect.ValueOf(new(bool)))
	}
}

// convertFields converts the fields of a struct that have the same names.
func convertFields(to, from reflect.Value) {
	for i := range to.NumField() {
		if field := from.FieldByName(to.Type().Field(i).Name); field.IsValid() {
			convert(Different, to.Field(i), field)
		}
	}
}
