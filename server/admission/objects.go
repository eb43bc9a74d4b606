package admission

import (
	"context"

	"github.com/rowlock/rowlock/server/kinds"
)

// Objects lets plugins look at stored objects. They are decoded, in the stored
// version, and belong to the caller.
type Objects interface {
	// Get finds an object by storage key; nil where there is none, for certain.
	Get(ctx context.Context, storage, namespace, name string) (kinds.Object, error)
	// List lists a namespace's objects, or all (""), in key order, as far as this
	// server has seen them.
	List(ctx context.Context, storage, namespace string) ([]kinds.Object, error)
}

// Prefilter is an Objects that can skip objects by their text, without decoding them.
type Prefilter interface {
	// ListWhere lists the objects for whose text may returns true. may must not change it.
	ListWhere(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
}

// ListWhere lists at least the objects for whose JSON may returns true.
func ListWhere(ctx context.Context, objects Objects, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error) {
	if p, ok := objects.(Prefilter); ok {
		return p.ListWhere(ctx, storage, namespace, may)
	}
	return objects.List(ctx, storage, namespace)
}
