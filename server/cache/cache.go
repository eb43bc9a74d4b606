package cache

import (
	"context"
	"errors"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Cache is the memory of one server. It implements sqlstore.Sink.
type Cache struct {
	catalogue *kinds.Catalogue
}

// New makes an empty cache; selectable fields and indexes come from the catalogue.
func New(catalogue *kinds.Catalogue) *Cache { return &Cache{catalogue: catalogue} }

var errStub = errors.New("cache: being built")

// Load fills the cache with all live rows and returns the revision they are of,
// from which the feed goes on.
func (c *Cache) Load(ctx context.Context, s *sqlstore.Store) (revision int64, err error) {
	return 0, errStub
}

// Apply takes the next changes of the log; see sqlstore.Sink.
func (c *Cache) Apply(batch []sqlstore.Change) {}

// Revision is the newest revision applied.
func (c *Cache) Revision() int64 { return 0 }

// WaitFor returns once revision is applied, or with ctx's error.
func (c *Cache) WaitFor(ctx context.Context, revision int64) error { return errStub }

// Get finds a live item by storage key, or nil. It does not wait for anything.
func (c *Cache) Get(storage, namespace, name string) *Item { return nil }

// Snapshot is one storage's live items at one revision. O(1), immutable.
type Snapshot struct {
	Revision int64
}

// Snapshot takes the newest snapshot of a storage.
func (c *Cache) Snapshot(storage string) *Snapshot { return &Snapshot{} }

// Len counts all items.
func (s *Snapshot) Len() int { return 0 }

// Ascend calls fn in key order, for one namespace or all (""), after a key
// (exclusive; "" from the start), until fn returns false.
func (s *Snapshot) Ascend(namespace, afterNamespace, afterName string, fn func(*Item) bool) {}

// Pending travels as sqlstore.Op.Aux from a writer to Apply, which sets Item
// before the write is acknowledged. So the writer answers with the very item that
// readers see. Meta may be nil.
type Pending struct {
	Meta *Meta
	Item *Item
}
