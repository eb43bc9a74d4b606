package verbs

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/vault"
)

// home is the resource that serves a storage in its stored version.
func (h *Handler) home(st *kinds.Storage) *kinds.Resource { return h.Catalogue.ByStorage(st.Key) }

// stored decodes an item in its stored version, one of a custom resource in r's.
func (h *Handler) stored(ctx context.Context, r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	obj, err := h.decoded(r, item)
	if err != nil || !r.Custom || clean(r, item) {
		return obj, err
	}
	out, err := r.Schema.FromStore(ctx, obj)
	if err != nil {
		return nil, shown(err)
	}
	return out[0], nil
}

// decoded is an item as it is stored.
func (h *Handler) decoded(r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	if item.Corrupt != nil {
		return nil, corrupt(r, item)
	}
	home := r
	if !r.Custom {
		home = h.home(r.Storage)
	}
	obj := home.New()
	if (jsoncodec.Codec{}).DecodeClean(item.JSON, obj) {
		return obj, nil
	}
	obj = home.New()
	if _, err := (jsoncodec.Codec{}).Decode(item.JSON, obj, codecs.Ignore); err != nil {
		return nil, fmt.Errorf("decoding %s %s/%s: %w", r.Storage.Key, item.Namespace, item.Name, err)
	}
	return obj, nil
}

// served decodes an item in the version of r.
func (h *Handler) served(ctx context.Context, r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	obj, err := h.stored(ctx, r, item)
	if err != nil || r.FromStorage == nil || r.Custom {
		return obj, err
	}
	return convert(r.FromStorage, obj, r)
}

// toStorage converts an object of r's version to the stored one.
func toStorage(r *kinds.Resource, obj kinds.Object) (kinds.Object, error) {
	if r.ToStorage == nil || r.Custom {
		return obj, nil
	}
	out, err := r.ToStorage(obj)
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	return out, nil
}

func fromStorage(r *kinds.Resource, obj kinds.Object) (kinds.Object, error) {
	if r.FromStorage == nil || r.Custom {
		return obj, nil
	}
	return convert(r.FromStorage, obj, r)
}

func convert(f func(kinds.Object) (kinds.Object, error), obj kinds.Object, r *kinds.Resource) (kinds.Object, error) {
	out, err := f(obj)
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", r.GVK(), err)
	}
	out.GetObjectKind().SetGroupVersionKind(r.GVK())
	return out, nil
}

func copyOf(obj kinds.Object) kinds.Object { return obj.DeepCopyObject().(kinds.Object) }

// encode makes the bytes to store. obj loses its resourceVersion.
func encode(ctx context.Context, r *kinds.Resource, obj kinds.Object) ([]byte, error) {
	obj.SetResourceVersion("")
	obj.SetSelfLink("")
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if m, ok := u.Object["metadata"].(map[string]any); ok {
			delete(m, "resourceVersion")
			delete(m, "selfLink")
		}
	}
	switch r.Storage.GVK.Group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io": // a stock server stores these as JSON
	default:
		kinds.DropEmpty(obj)
	}
	if r.Custom {
		var err error
		if obj, err = r.Schema.ToStore(ctx, copyOf(obj)); err != nil {
			return nil, shown(err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	// What is stored is kept: it gets memory of its very size.
	scratch := getBuffer()
	defer putBuffer(scratch)
	data, err := jsoncodec.Append((*scratch)[:0], obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", r.Storage.Key, err)
	}
	*scratch = data
	return bytes.Clone(data), nil
}

// unchanged says whether the bytes to store are those of the item, which has its
// resourceVersion in them besides.
func unchanged(item *cache.Item, data []byte) bool {
	extra := len(item.JSON) - len(data)
	if item.Corrupt != nil || extra <= 0 {
		return false
	}
	same := 0
	for same < len(data) && item.JSON[same] == data[same] {
		same++
	}
	return string(item.JSON[same+extra:]) == string(data[same:])
}

// live finds the item of a key. Where the cache has none, it looks again with
// everything that any server has written, so that a nil is an answer.
func (h *Handler) live(ctx context.Context, p permits.Permit, at vault.Place) (*cache.Item, error) {
	if item, err := h.Store.Get(p, at); item != nil || err != nil {
		return item, err
	}
	if err := h.catchUp(ctx); err != nil {
		return nil, err
	}
	return h.Store.Get(p, at)
}

// catchUp waits until the cache has everything that was written before.
func (h *Handler) catchUp(ctx context.Context) error {
	head, err := h.Store.Head(ctx)
	if err != nil {
		return err
	}
	if h.Store.Revision() >= head {
		return nil
	}
	return h.Store.WaitFor(ctx, head)
}

// segment refuses a name that could not stand in a path, before anybody looks for it.
func segment(name string) error {
	if faults := path.IsValidPathSegmentName(name); len(faults) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(faults, ";")))
	}
	return nil
}

// Live finds a live object, decoded in its stored version. It answers 404 where there
// is none, and 400 where there can be none.
func (h *Handler) Live(ctx context.Context, p permits.Permit, at vault.Place) (kinds.Object, *cache.Item, error) {
	if err := segment(at.Name); err != nil {
		return nil, nil, err
	}
	item, err := h.live(ctx, p, at)
	if err != nil {
		return nil, nil, err
	}
	if item == nil {
		return nil, nil, apierrors.NewNotFound(at.Resource.GroupResource(), at.Name)
	}
	obj, err := h.stored(ctx, at.Resource, item)
	return obj, item, err
}

// Item finds a stored object as it is, or nil where there is none, for certain.
func (h *Handler) Item(ctx context.Context, p permits.Permit, at vault.Place) (*cache.Item, error) {
	return h.live(ctx, p, at)
}

// expiry is when an object dies by itself, or zero.
func expiry(st *kinds.Storage, obj kinds.Object, now time.Time) time.Time {
	if st.TTL == nil {
		return time.Time{}
	}
	if ttl := st.TTL(obj); ttl > 0 {
		return now.Add(ttl)
	}
	return time.Time{}
}
