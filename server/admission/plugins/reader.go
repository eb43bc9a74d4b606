package plugins

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
)

// Reader gives plugins the objects of a server; it implements admission.Objects, admission.Namespaces and
// criteria.Namespaces. Plugins read with the server's own rights, and must not reveal objects to a client
// that may not read them.
type Reader struct {
	Catalogue *kinds.Catalogue
	Cache     *cache.Cache
	Objects   *objects.Store
}

var (
	forAdmission  = permits.OfServer("admission")
	forNamespaces = permits.OfServer("the life of namespaces")
)

// Get implements admission.Objects.
func (r Reader) Get(ctx context.Context, storage, namespace, name string) (kinds.Object, error) {
	at, err := r.place(storage, namespace, name)
	if err != nil {
		return nil, err
	}
	obj, _, err := r.Objects.Live(ctx, forAdmission, at)
	var st *apierrors.StatusError
	if errors.As(err, &st) && (apierrors.IsNotFound(st) || apierrors.IsBadRequest(st)) {
		return nil, nil
	}
	return obj, err
}

// Item implements criteria.Namespaces.
func (r Reader) Item(ctx context.Context, storage, namespace, name string) (*cache.Item, error) {
	at, err := r.place(storage, namespace, name)
	if err != nil {
		return nil, err
	}
	return r.Objects.Find(ctx, forAdmission, at)
}

func (r Reader) place(storage, namespace, name string) (objects.Place, error) {
	resource := r.Catalogue.ByStorage(storage)
	if resource == nil {
		return objects.Place{}, fmt.Errorf("no resource is stored as %s", storage)
	}
	return objects.Place{Resource: resource, Namespace: namespace, Name: name}, nil
}

// List implements admission.Objects.
func (r Reader) List(ctx context.Context, storage, namespace string, may func(text []byte) bool) ([]kinds.Object, error) {
	resource := r.Catalogue.ByStorage(storage)
	if resource == nil {
		return nil, fmt.Errorf("no resource is stored as %s", storage)
	}
	var out []kinds.Object
	var err error
	r.Cache.Snapshot(storage).Ascend(namespace, "", "", func(item *cache.Item) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		if item.Err() != nil {
			return true // an object that cannot be read is ignored
		}
		text := item.JSON()
		if may != nil && !may(text) {
			return true
		}
		obj := resource.New()
		if r.Cache.JSON().DecodeClean(text, obj) {
			out = append(out, obj)
			return true
		}
		obj = resource.New()
		if _, err = r.Cache.JSON().Decode(text, obj, codecs.Ignore); err != nil {
			err = fmt.Errorf("%s %s/%s: %w", storage, item.Namespace, item.Name, err)
			return false
		}
		out = append(out, obj)
		return true
	})
	return out, err
}

// Namespace implements admission.Namespaces.
func (r Reader) Namespace(ctx context.Context, name string) (exists, terminating bool, err error) {
	at, err := r.place("namespaces", "", name)
	if err != nil {
		return false, false, err
	}
	item, err := r.Objects.Find(ctx, forNamespaces, at)
	if err != nil || item == nil {
		return false, false, err
	}
	return true, item.Meta().Deleting, nil
}
