package definitions

import (
	"errors"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
)

// parsedKept bounds the cached definitions: followers read a definition soon after one another.
const parsedKept = 32

// Reader reads definitions for all their followers, usually each state of one once: skipping 160 KB of text
// takes longer than processing the rest. It is safe for concurrent use; the zero Reader is ready, and a nil
// one reads each time.
type Reader struct {
	mu   sync.Mutex
	of   [parsedKept]*parsedDefinition // the newest somewhere among them
	next int
}

// parsedDefinition is one state of a definition.
type parsedDefinition struct {
	name     string
	revision int64

	once    sync.Once
	crd     *apiextensionsv1.CustomResourceDefinition
	digests Digests
	err     error
}

// errUnread is the error of a definition whose parsing panicked, as it does if the cache cannot read the item.
var errUnread = errors.New("the definition was not read")

// Read is Read for an item of the cache. The result is shared, and must not be changed.
func (r *Reader) Read(c json.Codec, item *cache.Item) (*apiextensionsv1.CustomResourceDefinition, Digests, error) {
	if r == nil || item.Err() != nil { // the same revision may be another text later
		return Read(c, item.Peek())
	}
	one := r.reading(item)
	one.once.Do(func() {
		one.err = errUnread
		one.crd, one.digests, one.err = Read(c, item.Peek())
	})
	if one.err == errUnread {
		return Read(c, item.Peek())
	}
	return one.crd, one.digests, one.err
}

// reading returns the definition of an item that is being parsed, or starts one.
func (r *Reader) reading(item *cache.Item) *parsedDefinition {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		if one != nil && one.revision == item.Revision && one.name == item.Name {
			return one
		}
	}
	one := &parsedDefinition{name: item.Name, revision: item.Revision}
	r.of[r.next] = one
	r.next = (r.next + 1) % parsedKept
	return one
}
