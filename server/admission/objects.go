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
	// List lists a namespace's objects, or all (""), in key order, as far as this server has seen them: those
	// for whose JSON may returns true, or nil for all. Others may come too; may must not change the text.
	List(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
}
