package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// claims lets an Allocator see what is taken.
type claims struct{ cache *cache.Cache }

func poolKey(pool string) string { return "~" + pool }

func (c claims) Taken(pool, name string) bool { return c.cache.Get(poolKey(pool), "", name) != nil }
func (c claims) Count(pool string) int        { return c.cache.Count(poolKey(pool)) }

// errClaimed: something that was planned for an object is not as it was; plan again.
var errClaimed = errors.New("a claim was taken meanwhile")

// plan lists the extra writes of a change: what an allocator takes and gives back,
// and what goes with a deleted object. obj is nil for a delete, old for a create.
func (h *Handler) plan(ctx context.Context, st *kinds.Storage, obj, old kinds.Object, dry bool) ([]sqlstore.Op, error) {
	var ops []sqlstore.Op
	if st.DeleteAlso != "" && obj == nil && !dry {
		key := sqlstore.Key{Resource: st.DeleteAlso, Namespace: old.GetNamespace(), Name: old.GetName()}
		if item := h.Cache.Get(key.Resource, key.Namespace, key.Name); item != nil {
			ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON})
		}
	}
	if st.Allocate == nil {
		return ops, nil
	}
	take, release, err := st.Allocate.Plan(ctx, obj, old, claims{h.Cache}, dry)
	if err != nil || dry {
		return nil, err
	}
	for _, cl := range release {
		key := sqlstore.Key{Resource: poolKey(cl.Pool), Name: cl.Name}
		item := h.Cache.Get(key.Resource, "", key.Name)
		if item == nil {
			continue // given back already
		}
		ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON})
	}
	for _, cl := range take {
		ops = append(ops, sqlstore.Op{
			Verb:  sqlstore.Create,
			Key:   sqlstore.Key{Resource: poolKey(cl.Pool), Name: cl.Name},
			Value: fmt.Appendf(nil, "{\"owner\":%q}", cl.Owner),
		})
	}
	return ops, nil
}

// commit writes an object and its claims together and returns the item that
// readers now see. Errors are those of the store for the object itself; errClaimed
// for the rest.
func (h *Handler) commit(ctx context.Context, op sqlstore.Op, extra []sqlstore.Op) (*cache.Item, error) {
	pending := &cache.Pending{}
	op.Aux = pending
	var out sqlstore.Outcome
	var err error
	if len(extra) == 0 {
		out, err = h.Store.Write(ctx, op)
	} else {
		out, err = h.Store.Write(ctx, append([]sqlstore.Op{op}, extra...)...)
	}
	if err != nil {
		if k, ok := keyOf(err); ok && k != op.Key {
			if werr := h.catchUp(ctx); werr != nil {
				return nil, werr
			}
			return nil, errClaimed
		}
		return nil, err
	}
	if pending.Item == nil { // the cache was loaded anew meanwhile, with this write in it
		row := &sqlstore.Row{Key: op.Key, Revision: out.Revisions[0], Created: out.Created[0], Value: op.Value}
		return cache.NewOwnItem(row, h.Catalogue.ByStorage(op.Key.Resource).Storage), nil
	}
	return pending.Item, nil
}

// keyOf is the key that a failed condition is about.
func keyOf(err error) (sqlstore.Key, bool) {
	var (
		exists   *sqlstore.ExistsError
		conflict *sqlstore.ConflictError
		gone     *sqlstore.NotFoundError
	)
	switch {
	case errors.As(err, &exists):
		return exists.Key, true
	case errors.As(err, &conflict):
		return conflict.Key, true
	case errors.As(err, &gone):
		return gone.Key, true
	}
	return sqlstore.Key{}, false
}

// outrun waits for the write that was faster, where err says that there was one.
// It returns err itself if it says anything else.
func (h *Handler) outrun(ctx context.Context, err error) error {
	var (
		conflict *sqlstore.ConflictError
		exists   *sqlstore.ExistsError
		gone     *sqlstore.NotFoundError
	)
	switch {
	case errors.Is(err, errClaimed):
		return nil
	case errors.As(err, &conflict):
		return h.Cache.WaitFor(ctx, conflict.Current.Revision)
	case errors.As(err, &exists):
		return h.Cache.WaitFor(ctx, exists.Current.Revision)
	case errors.As(err, &gone):
		return h.catchUp(ctx)
	}
	return err
}
