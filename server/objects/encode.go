package objects

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// scratches are buffers for encoding. The result, whose length is known only then, is copied to memory of its
// own.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 512 << 10 // the largest buffer that returns to the pool

// Encode returns the bytes to store; about is their expected number, 0: unknown. It removes the resourceVersion of obj, and may change it in
// other ways.
func (s *Store) Encode(ctx context.Context, r *kinds.Resource, obj kinds.Object, about int) ([]byte, error) {
	obj.SetResourceVersion("")
	obj.SetSelfLink("")
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if m, ok := u.Object["metadata"].(map[string]any); ok {
			delete(m, "resourceVersion")
			delete(m, "selfLink")
		}
	}
	obj, err := r.Save(ctx, obj)
	if err != nil {
		return nil, status.Show(err)
	}
	value, err := s.encoded(obj, about)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", r.Storage.Key, err)
	}
	return value, nil
}

// encoded returns an object as JSON. A buffer that grows to a large object would take five times its memory, so a large one is
// encoded into a buffer of its size.
func (s *Store) encoded(obj kinds.Object, about int) ([]byte, error) {
	if budget.Large(about) {
		return s.cache.JSON().Append(make([]byte, 0, about+about/32), obj)
	}
	scratch := scratches.Get().(*[]byte)
	data, err := s.cache.JSON().Append((*scratch)[:0], obj)
	value := bytes.Clone(data)
	if *scratch = data; cap(data) <= maxScratch {
		scratches.Put(scratch)
	}
	return value, err
}

// Unstored makes an item of bytes from Encode, for the answer to a write that stores nothing: the client gets
// the answer that it would get for a stored object. revision is that of the stored object, and version its
// resourceVersion; for a new object they are 0 and the version that the client sent.
func (s *Store) Unstored(at Place, revision int64, version string, value []byte) *cache.Item {
	return cache.NewUnstoredItem(&sqlstore.Row{Key: at.Key(), Revision: revision, Value: value}, version, at.Resource.Storage)
}

// Current returns nil if an item is the live one among the writes of all servers when Current is called, and ErrClaimed if it
// is not: a write that would change nothing may be acknowledged only for the live one.
func (s *Store) Current(ctx context.Context, p permits.Permit, at Place, item *cache.Item) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	live, err := s.Get(p, at)
	if err == nil && (live == nil || live.Revision != item.Revision) {
		err = ErrClaimed
	}
	return err
}

// Unchanged reports whether the bytes to store are those of the item, apart from the item's resourceVersion.
func Unchanged(item *cache.Item, data []byte) bool {
	extra := item.Size() - len(data)
	if item.Err() != nil || extra <= 0 {
		return false
	}
	have, same := item.JSON(), 0
	for same < len(data) && have[same] == data[same] {
		same++
	}
	return string(have[same+extra:]) == string(data[same:])
}

// Expiry returns when an object expires, or zero.
func Expiry(st *kinds.Storage, obj kinds.Object, now time.Time) time.Time {
	if st.TTL == nil {
		return time.Time{}
	}
	if ttl := st.TTL(obj); ttl > 0 {
		return now.Add(ttl)
	}
	return time.Time{}
}

// CheckSize refuses a value that is too large. live is the object that it replaces; nil: none. An object that
// was stored when the limit was higher may keep its size, so that its finalizers can be removed.
func (s *Store) CheckSize(value []byte, live *cache.Item) error {
	most := int(s.sizes.Object())
	if len(value) <= most || live != nil && len(value) <= live.Size()-len(`"resourceVersion":"",`)-len(strconv.FormatInt(live.Revision, 10)) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d bytes, the limit is %d", len(value), most))
}
