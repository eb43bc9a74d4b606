package resource

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// mapping has the fields of NodeAllocatableResourceMapping, a type that k8s.io/api has in v0.36 alone.
type mapping struct {
	CapacityKey          *resourceapi.QualifiedName
	AllocationMultiplier *apiresource.Quantity
}

// mappings is the field NodeAllocatableResourceMappings of a device. A program with this server may select
// v0.37 of k8s.io/api, where devices do not have the field: there it is always empty.
type mappings struct{ field reflect.Value }

func mappingsOf(d *resourceapi.Device) mappings {
	return mappings{reflect.ValueOf(d).Elem().FieldByName("NodeAllocatableResourceMappings")}
}

func (m mappings) empty() bool { return !m.field.IsValid() || m.field.Len() == 0 }

func (m mappings) drop() {
	if m.field.IsValid() {
		m.field.SetZero()
	}
}

// all returns a copy of the entries.
func (m mappings) all() map[corev1.ResourceName]mapping {
	if m.empty() {
		return nil
	}
	out := make(map[corev1.ResourceName]mapping, m.field.Len())
	for entries := m.field.MapRange(); entries.Next(); {
		out[corev1.ResourceName(entries.Key().String())] = entries.Value().Convert(reflect.TypeFor[mapping]()).Interface().(mapping)
	}
	return out
}

// set replaces the entry of a name, which the map must have.
func (m mappings) set(name corev1.ResourceName, to mapping) {
	m.field.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(to).Convert(m.field.Type().Elem()))
}
