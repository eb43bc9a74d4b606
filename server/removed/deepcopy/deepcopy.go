// Package deepcopy copies the parts of the API types below package removed.
package deepcopy

import "k8s.io/apimachinery/pkg/runtime"

// Copier copies all of a T into another one, which is empty.
type Copier[T any] interface {
	*T
	DeepCopyInto(*T)
}

// List copies the items of a list.
func List[T any, P Copier[T]](from []T) []T {
	if from == nil {
		return nil
	}
	out := make([]T, len(from))
	for i := range from {
		P(&from[i]).DeepCopyInto(&out[i])
	}
	return out
}

// Map copies the values of a map.
func Map[K comparable, T any, P Copier[T]](from map[K]T) map[K]T {
	if from == nil {
		return nil
	}
	out := make(map[K]T, len(from))
	for k, v := range from {
		var c T
		P(&v).DeepCopyInto(&c)
		out[k] = c
	}
	return out
}

// Pointer copies what a pointer points to.
func Pointer[T any, P Copier[T]](from *T) *T {
	if from == nil {
		return nil
	}
	out := new(T)
	P(from).DeepCopyInto(out)
	return out
}

// Value copies what a pointer points to, which has no pointers itself.
func Value[T any](from *T) *T {
	if from == nil {
		return nil
	}
	out := *from
	return &out
}

// Object is Pointer for a runtime.Object.
func Object[T any, P interface {
	Copier[T]
	runtime.Object
}](from *T) runtime.Object {
	if from == nil {
		return nil
	}
	return P(Pointer[T, P](from))
}
