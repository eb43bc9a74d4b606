package objects

import (
	"bytes"
	"strings"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// Claims are rows of a storage of their own for each pool. No request names them, so
// nobody is asked about them: they go with the objects that claim.

const poolPrefix = "~"

func isPool(storage string) bool { return strings.HasPrefix(storage, poolPrefix) }

// claimKey is the key of a claim.
func claimKey(pool, name string) sqlstore.Key {
	return sqlstore.Key{Resource: poolPrefix + pool, Name: name}
}

// claim finds a claim, or nil.
func (s *Store) claim(pool, name string) *cache.Item { return s.cache.Get(poolPrefix+pool, "", name) }

// claims shows allocators what is taken.
func (s *Store) claims() kinds.Claims { return taken{s.cache} }

type taken struct{ cache *cache.Cache }

func (c taken) Taken(pool, name string) bool { return c.cache.Get(poolPrefix+pool, "", name) != nil }
func (c taken) Count(pool string) int        { return c.cache.Count(poolPrefix + pool) }

// companion finds the object that goes with a deleted one, or nil.
func (s *Store) companion(p permits.Permit, at Place) (*cache.Item, error) {
	if at.Resource.Storage.DeleteAlso == "" {
		return nil, nil
	}
	if err := at.check(&p, permits.Delete); err != nil {
		return nil, err
	}
	return s.cache.Get(at.Resource.Storage.DeleteAlso, at.Namespace, at.Name), nil
}

// claimed gives back all that is claimed for an owner who cannot be asked what it is.
func (s *Store) claimed(owner string) (ops []sqlstore.Op) {
	value := kinds.ClaimValue(owner)
	for _, pool := range s.cache.Storages() {
		if !isPool(pool) {
			continue
		}
		s.cache.Snapshot(pool).Ascend("", "", "", func(item *cache.Item) bool {
			if bytes.Equal(item.JSON, value) {
				key := sqlstore.Key{Resource: pool, Namespace: item.Namespace, Name: item.Name}
				ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON})
			}
			return true
		})
	}
	return ops
}
