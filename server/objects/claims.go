package objects

import (
	"bytes"
	"context"
	"strings"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Claims are rows of a separate storage for each pool. No request can name them, so no authorizer decides
// about them: they are written with the objects that claim.

const poolPrefix = "~"

func isPool(storage string) bool { return strings.HasPrefix(storage, poolPrefix) }

// The exception are claims in a storage that the kind names itself (ClaimsIn), such as the IPAddresses of
// Services. Clients read them like all other objects. The server writes them with the permit for the claiming
// object.

// poolOf returns the storage of a kind's claims in a pool.
func poolOf(st *kinds.Storage, pool string) string {
	if pool == st.ClaimsIn {
		return pool
	}
	return poolPrefix + pool
}

// claims returns the view of the claims that an allocator needs for one plan.
func (s *Store) claims(st *kinds.Storage) *claims {
	return &claims{cache: s.cache, storage: st, removed: map[string]int64{}, changed: map[string]int64{}}
}

// claims is the claims as they are in the cache. It notes the state of the storages that it has shown.
type claims struct {
	cache            *cache.Cache
	storage          *kinds.Storage
	removed, changed map[string]int64 // by storage, before it was read first
}

func (c *claims) Taken(pool, name string) bool {
	key := poolOf(c.storage, pool)
	if _, known := c.removed[key]; !known {
		_, c.removed[key] = c.cache.LastChange(key)
	}
	return c.cache.Get(key, "", name) != nil
}

func (c *claims) Removed(pool string) int64 {
	key := poolOf(c.storage, pool)
	_, removed := c.cache.LastChange(key)
	if _, known := c.removed[key]; !known {
		c.removed[key] = removed
	}
	return removed
}

func (c *claims) Changed(storage string) int64 {
	changed, _ := c.cache.LastChange(storage)
	if _, known := c.changed[storage]; !known {
		c.changed[storage] = changed
	}
	return changed
}

// outdated reports whether something that a refusal may rest on has changed: a claim was released, or an object of another
// storage was written.
func (c *claims) outdated() bool {
	for key, before := range c.removed {
		if _, removed := c.cache.LastChange(key); removed != before {
			return true
		}
	}
	for key, before := range c.changed {
		if changed, _ := c.cache.LastChange(key); changed != before {
			return true
		}
	}
	return false
}

func (c *claims) Each(storage string, fn func(name string, revision int64, encoded []byte)) {
	c.cache.Snapshot(storage).Ascend("", "", "", func(item *cache.Item) bool {
		if item.Err() == nil {
			fn(item.Name, item.Revision, item.JSON())
		}
		return true
	})
}

// ClaimKey returns the key of the claim of an object.
func ClaimKey(st *kinds.Storage, cl *kinds.Claim) sqlstore.Key {
	return sqlstore.Key{Resource: poolOf(st, cl.Pool), Name: cl.Name}
}

// takeOp returns the operation that writes a claim.
func (s *Store) takeOp(ctx context.Context, st *kinds.Storage, cl *kinds.Claim) (sqlstore.Op, error) {
	op := sqlstore.Op{Verb: sqlstore.Create, Key: ClaimKey(st, cl), Value: kinds.ClaimValue(cl.Owner)}
	if cl.Object == nil {
		return op, nil
	}
	var err error
	op.Value, err = s.Encode(ctx, s.catalogue.ByStorage(cl.Pool), cl.Object, 0)
	return op, err
}

// claimed returns the operations that release all claims of an owner whose object cannot be read.
func (s *Store) claimed(owner string) (ops []sqlstore.Op) {
	value := kinds.ClaimValue(owner)
	for _, pool := range s.cache.Storages() {
		if !isPool(pool) {
			continue
		}
		s.cache.Snapshot(pool).Ascend("", "", "", func(item *cache.Item) bool {
			if bytes.Equal(item.JSON(), value) {
				key := sqlstore.Key{Resource: pool, Namespace: item.Namespace, Name: item.Name}
				ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON(), AsStored: item.Sealed()})
			}
			return true
		})
	}
	return ops
}
