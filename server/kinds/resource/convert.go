package resource

import (
	"reflect"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

var (
	quantity = reflect.TypeFor[apiresource.Quantity]()
	capacity = reflect.TypeFor[resourcev1beta1.DeviceCapacity]()
)

// Capacity converts the capacity of a device, which is a quantity in v1alpha3 and an object with a
// quantity in v1beta1 (see kinds.Conversion).
func Capacity(to, from reflect.Value) bool {
	switch {
	case to.Type() == capacity && from.Type() == quantity:
		to.FieldByName("Value").Set(from)
	case to.Type() == quantity && from.Type() == capacity:
		to.Set(from.FieldByName("Value"))
	default:
		return false
	}
	return true
}
