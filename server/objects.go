package server

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
)

// stored implements admission.Objects on the cache: plugins read by the server's own
// right, and must not tell a client what it may not read.
type stored struct{ s *Server }

var forAdmission = permits.OfServer("admission")

func (o stored) Get(ctx context.Context, storage, namespace, name string) (kinds.Object, error) {
	at, err := o.place(storage, namespace, name)
	if err != nil {
		return nil, err
	}
	obj, _, err := o.s.objects.Live(ctx, forAdmission, at)
	var st *apierrors.StatusError
	if errors.As(err, &st) && (apierrors.IsNotFound(st) || apierrors.IsBadRequest(st)) {
		return nil, nil
	}
	return obj, err
}

// Item implements criteria.Namespaces.
func (o stored) Item(ctx context.Context, storage, namespace, name string) (*cache.Item, error) {
	at, err := o.place(storage, namespace, name)
	if err != nil {
		return nil, err
	}
	return o.s.objects.Find(ctx, forAdmission, at)
}

func (o stored) place(storage, namespace, name string) (objects.Place, error) {
	r := o.s.cfg.Catalogue.ByStorage(storage)
	if r == nil {
		return objects.Place{}, fmt.Errorf("no resource is stored as %s", storage)
	}
	return objects.Place{Resource: r, Namespace: namespace, Name: name}, nil
}

func (o stored) List(_ context.Context, storage, namespace string) ([]kinds.Object, error) {
	r := o.s.cfg.Catalogue.ByStorage(storage)
	if r == nil {
		return nil, fmt.Errorf("no resource is stored as %s", storage)
	}
	var out []kinds.Object
	var err error
	o.s.Cache.Snapshot(storage).Ascend(namespace, "", "", func(item *cache.Item) bool {
		if item.Corrupt != nil {
			return true // what cannot be read cannot be respected
		}
		obj := r.New()
		if _, err = (jsoncodec.Codec{}).Decode(item.JSON, obj, codecs.Ignore); err != nil {
			err = fmt.Errorf("%s %s/%s: %w", storage, item.Namespace, item.Name, err)
			return false
		}
		out = append(out, obj)
		return true
	})
	return out, err
}
