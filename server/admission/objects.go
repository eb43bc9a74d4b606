package admission

import (
	"context"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/kinds"
)

// Objects lets plugins look at stored objects. They are decoded, in the stored
// version, and belong to the caller.
type Objects interface {
	// Get finds an object by storage key; nil where there is none, for certain.
	Get(ctx context.Context, storage, namespace, name string) (kinds.Object, error)
	// List lists a namespace's objects, or all (""), in key order, as far as this server has seen them: those
	// for whose JSON may returns true, or nil for all. Others may come too; may must not change the text. It ends with the context.
	List(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
}

// maxListed bounds the text of the objects that a plugin lists for a write. Clients may fill a namespace with any number of
// large ones, which take ten times as much memory once decoded.
const maxListed = 2 << 20

// ListAll lists the objects of a namespace that a write has to comply with. Errors: a 413 if they are larger than maxListed.
func ListAll(ctx context.Context, objects interface {
	List(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error)
}, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	size := 0
	list, err := objects.List(ctx, storage, namespace, func(text []byte) bool {
		if may != nil && !may(text) {
			return false
		}
		if size += len(text); size > maxListed {
			enough()
		}
		return size <= maxListed
	})
	if size > maxListed {
		return nil, budget.TooMuch("the %s of the namespace that the write has to comply with have more than %d bytes", storage, maxListed)
	}
	return list, err
}
