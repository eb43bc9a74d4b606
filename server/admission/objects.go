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

// Choosy is Objects that looks at the text of objects before it decodes them.
type Choosy interface {
	// ListWhere is List of those whose text may says yes to, which must not change it.
	ListWhere(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
}

// ListWhere is List of objects that may be looked for, by their JSON, and perhaps of others.
func ListWhere(ctx context.Context, objects Objects, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error) {
	if choosy, ok := objects.(Choosy); ok {
		return choosy.ListWhere(ctx, storage, namespace, may)
	}
	return objects.List(ctx, storage, namespace)
}
