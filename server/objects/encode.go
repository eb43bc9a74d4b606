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

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// scratches are buffers that objects are encoded in before their bytes, whose length is known only then,
// are copied to memory of their own.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 512 << 10 // the largest buffer that is kept

// Encode makes the bytes to store. obj loses its resourceVersion, and may be changed.
func (s *Store) Encode(ctx context.Context, r *kinds.Resource, obj kinds.Object) ([]byte, error) {
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
	scratch := scratches.Get().(*[]byte)
	data, err := s.cache.JSON().Append((*scratch)[:0], obj)
	value := bytes.Clone(data)
	if *scratch = data; cap(data) <= maxScratch {
		scratches.Put(scratch)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", r.Storage.Key, err)
	}
	return value, nil
}

// Unstored is an item of bytes that Encode made, for the answer to a write that stores nothing: clients
// are shown it as they would be shown what is stored. revision is that of the stored object, and version its
// resourceVersion; 0 for a new object, and what the client sent with it.
func (s *Store) Unstored(at Place, revision int64, version string, value []byte) *cache.Item {
	return cache.NewUnstoredItem(&sqlstore.Row{Key: at.Key(), Revision: revision, Value: value}, version, at.Resource.Storage)
}

// Unchanged says whether a write of the bytes would change nothing: they are those of the
// item, and are encrypted in the table as they would be now. For who may write it reads the
// row, where values are encrypted.
func (s *Store) Unchanged(ctx context.Context, p permits.Permit, at Place, item *cache.Item, data []byte) bool {
	return Unchanged(item, data) && (at.check(&p, permits.Update) != nil || !s.store.Stale(ctx, at.Key(), item.Revision))
}

// Unchanged says whether the bytes to store are those of the item, which has its
// resourceVersion in them besides.
func Unchanged(item *cache.Item, data []byte) bool {
	extra := item.Size() - len(data)
	if item.Corrupt != nil || extra <= 0 {
		return false
	}
	have, same := item.JSON(), 0
	for same < len(data) && have[same] == data[same] {
		same++
	}
	return string(have[same+extra:]) == string(data[same:])
}

// Expiry is when an object dies by itself, or zero.
func Expiry(st *kinds.Storage, obj kinds.Object, now time.Time) time.Time {
	if st.TTL == nil {
		return time.Time{}
	}
	if ttl := st.TTL(obj); ttl > 0 {
		return now.Add(ttl)
	}
	return time.Time{}
}

// CheckSize refuses a value that is too large to be stored. live is the object that it replaces; nil: none. An object
// that was stored while the limit was higher may stay as large as it is, so that its finalizers can be removed.
func (s *Store) CheckSize(value []byte, live *cache.Item) error {
	most := int(s.sizes.Object())
	if len(value) <= most || live != nil && len(value) <= live.Size()-len(`"resourceVersion":"",`)-len(strconv.FormatInt(live.Revision, 10)) {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d bytes, the limit is %d", len(value), most))
}
