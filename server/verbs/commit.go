package verbs

import (
	"context"
	"errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/vault"
	"github.com/rowlock/rowlock/sqlstore"
)

// errClaimed: something that was planned for an object is not as it was; plan again.
var errClaimed = errors.New("a claim was taken meanwhile")

// plan lists the extra writes of a change: what an allocator takes and gives back,
// and what goes with a deleted object. obj is nil for a delete, old for a create.
func (h *Handler) plan(ctx context.Context, p permits.Permit, at vault.Place, obj, old kinds.Object, dry bool) ([]sqlstore.Op, error) {
	var ops []sqlstore.Op
	st := at.Resource.Storage
	if st.DeleteAlso != "" && obj == nil && !dry {
		item, err := h.Store.Companion(p, at)
		if err != nil {
			return nil, err
		}
		if item != nil {
			key := sqlstore.Key{Resource: st.DeleteAlso, Namespace: at.Namespace, Name: at.Name}
			ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON})
		}
	}
	if st.Allocate == nil {
		return ops, nil
	}
	take, release, err := st.Allocate.Plan(ctx, obj, old, h.Store.Claims(), dry)
	if err != nil || dry {
		return nil, err
	}
	for _, cl := range release {
		item := h.Store.Claim(cl.Pool, cl.Name)
		if item == nil {
			continue // given back already
		}
		ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: vault.ClaimKey(cl.Pool, cl.Name), Expect: item.Revision, Value: item.JSON})
	}
	for _, cl := range take {
		ops = append(ops, sqlstore.Op{
			Verb:  sqlstore.Create,
			Key:   vault.ClaimKey(cl.Pool, cl.Name),
			Value: kinds.ClaimValue(cl.Owner),
		})
	}
	return ops, nil
}

// commit writes an object and its claims together, if the permit covers it, and
// returns the item that readers now see. The operation needs no key. Errors are those of the store for the object itself; errClaimed
// for the rest.
func (h *Handler) commit(ctx context.Context, p permits.Permit, at vault.Place, op sqlstore.Op, extra []sqlstore.Op) (*cache.Item, error) {
	pending := &cache.Pending{}
	op.Key, op.Aux = at.Key(), pending
	out, err := h.Store.Write(ctx, p, at, op, extra...)
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
		return cache.NewOwnItem(row, at.Resource.Storage), nil
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
		return h.Store.WaitFor(ctx, conflict.Current.Revision)
	case errors.As(err, &exists):
		return h.Store.WaitFor(ctx, exists.Current.Revision)
	case errors.As(err, &gone):
		return h.catchUp(ctx)
	}
	return err
}
