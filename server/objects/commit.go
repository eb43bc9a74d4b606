package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/sqlstore"
)

// ErrClaimed: the object, or a claim of the plan, has changed; plan again.
var ErrClaimed = errors.New("another write came first")

// Plan lists the additional operations of a change: claims that allocators take and release, and the
// companion of a deleted object. obj is nil for a delete, old for a create. A refusal holds for the claims of all
// servers; ErrClaimed: the allocator must be asked again.
func (s *Store) Plan(ctx context.Context, p permits.Permit, at Place, obj, old kinds.Object, dry bool) ([]sqlstore.Op, error) {
	st := at.Resource.Storage
	var gone []sqlstore.Key
	if st.DeleteAlso != "" && obj == nil && !dry {
		if err := at.check(&p, permits.Delete); err != nil {
			return nil, err
		}
		gone = append(gone, sqlstore.Key{Resource: st.DeleteAlso, Namespace: at.Namespace, Name: at.Name})
	}
	var take []kinds.Claim
	if st.Allocate != nil {
		view := s.claims(st)
		taken, release, err := st.Allocate.Plan(ctx, obj, old, view, dry)
		if err != nil {
			return nil, s.conclusive(ctx, view, err)
		}
		if dry {
			return nil, nil
		}
		take = taken
		for i := range release {
			gone = append(gone, ClaimKey(st, &release[i]))
		}
	}
	ops, err := s.deletes(ctx, gone)
	if err != nil {
		return nil, err
	}
	for i := range take {
		op, err := s.takeOp(ctx, st, &take[i])
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// conclusive returns the refusal of an allocator, or ErrClaimed if claims of the view that it was shown have been released,
// by what all servers have written.
func (s *Store) conclusive(ctx context.Context, view *claims, refusal error) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	if view.outdated() {
		return ErrClaimed
	}
	return refusal
}

// deletes returns the operations that delete the objects of keys, as far as there are any. If the cache lacks one of them, it
// waits for every write of all servers: the cache may have an object, and not yet the claims of the same commit.
func (s *Store) deletes(ctx context.Context, keys []sqlstore.Key) ([]sqlstore.Op, error) {
	find := func(key sqlstore.Key) *cache.Item { return s.cache.Get(key.Resource, key.Namespace, key.Name) }
	if slices.ContainsFunc(keys, func(key sqlstore.Key) bool { return find(key) == nil }) {
		if err := s.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	var ops []sqlstore.Op
	for _, key := range keys {
		if item := find(key); item != nil {
			ops = append(ops, sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: item.Revision, Value: item.JSON(), AsStored: item.Sealed()})
		}
	}
	return ops, nil
}

// Commit writes an object and its claims together, if the permit covers it, and
// returns the item that readers now see. The operation needs no key. Errors are those of
// the store for the object itself, and ErrClaimed for the rest.
func (s *Store) Commit(ctx context.Context, p permits.Permit, at Place, op sqlstore.Op, extra []sqlstore.Op) (*cache.Item, error) {
	if err := at.check(&p, effectOf(op.Verb)); err != nil {
		return nil, err
	}
	pending, sent := &cache.Pending{}, op.Value
	op.Key, op.Aux = at.Key(), pending
	if op.Verb != sqlstore.Delete {
		op.Value = s.presentForm(ctx, at.Resource, op.Key, sent)
	}
	op.Immutable = true
	if budget.Large(len(op.Value)) {
		pending.Prepare(op.Value, s.Revision()+1)
	}
	for i := range extra {
		if !belongs(&extra[i], &op, at.Resource.Storage) {
			return nil, fmt.Errorf("a write of %v does not belong to one of %v", extra[i].Key, op.Key)
		}
	}
	ctx, span := tracing.Start(ctx, "store commit")
	defer span.End()
	if span.On() {
		span.Text("resource", op.Key.Resource)
		span.Number("operations", 1+len(extra))
		pending.Commit = &span
	}
	began := time.Now()
	out, err := s.store.Write(ctx, append([]sqlstore.Op{op}, extra...)...)
	request.From(ctx).Took(request.Commit, began)
	if err != nil {
		if k, ok := sqlstore.Unmet(err); ok && k != op.Key {
			if werr := s.CatchUp(ctx); werr != nil {
				return nil, werr
			}
			return nil, ErrClaimed
		}
		return nil, err
	}
	item := pending.Item
	if item == nil { // the cache was reloaded in the meantime, with this write
		row := &sqlstore.Row{Key: op.Key, Revision: out.Revisions[0], Created: out.Created[0], Value: op.Value}
		item = cache.NewOwnItem(row, at.Resource.Storage)
	}
	if op.Verb != sqlstore.Delete {
		item = s.renewed(ctx, at, &op, sent, item)
	}
	return item, nil
}

// Replace commits an object in place of an item, with its planned operations; value is its encoded form. If that would change
// nothing (the item has these bytes, and the table has them in the encryption of today), it commits nothing and returns the
// item, which may be acknowledged only if it is Current.
func (s *Store) Replace(ctx context.Context, p permits.Permit, at Place, item *cache.Item, obj kinds.Object, value []byte, extra []sqlstore.Op) (*cache.Item, error) {
	if err := at.check(&p, permits.Update); err != nil {
		return nil, err
	}
	if len(extra) == 0 && Unchanged(item, value) && !s.store.Stale(ctx, at.Key(), item.Revision) {
		return item, nil
	}
	return s.Commit(ctx, p, at, sqlstore.Op{
		Verb: sqlstore.Update, Expect: item.Revision, Value: value, ExpiresAt: Expiry(at.Resource.Storage, obj, s.Now()),
	}, extra)
}

// AwaitConflict returns nil if err means that another write was faster, once the cache has that write: the caller
// may try again. It returns any other error as it is.
func (s *Store) AwaitConflict(ctx context.Context, err error) error {
	var (
		conflict *sqlstore.ConflictError
		exists   *sqlstore.ExistsError
		gone     *sqlstore.NotFoundError
	)
	switch {
	case errors.Is(err, ErrClaimed):
		return nil
	case errors.As(err, &conflict):
		return s.WaitFor(ctx, conflict.Current.Revision)
	case errors.As(err, &exists):
		return s.WaitFor(ctx, exists.Current.Revision)
	case errors.As(err, &gone):
		return s.CatchUp(ctx)
	}
	return err
}

// Discard deletes an object that cannot be read. It takes two permits: to delete it, and to ignore that it
// cannot be read.
func (s *Store) Discard(ctx context.Context, p, unread permits.Permit, at Place, item *cache.Item) error {
	if err := at.check(&p, permits.Delete); err != nil {
		return err
	}
	if err := at.check(&unread, permits.Discard); err != nil {
		return err
	}
	_, damaged := errors.AsType[*sqlstore.DamageError](item.Err())
	ops := []sqlstore.Op{{Verb: sqlstore.Delete, Key: at.Key(), Expect: item.Revision, Value: item.JSON(), AsStored: item.Sealed(), Damaged: damaged}}
	if at.Resource.Storage.Allocate != nil {
		if err := s.CatchUp(ctx); err != nil { // see deletes
			return err
		}
		ops = append(ops, s.claimed(item.Namespace+"/"+item.Name)...)
	}
	_, err := s.store.Write(ctx, ops...)
	return err
}

func effectOf(v sqlstore.Verb) permits.Effect {
	switch v {
	case sqlstore.Create:
		return permits.Create
	case sqlstore.Update:
		return permits.Update
	case sqlstore.Delete:
		return permits.Delete
	}
	return 0
}

// belongs reports whether an operation is part of the write of an object.
func belongs(more, op *sqlstore.Op, st *kinds.Storage) bool {
	if isPool(more.Key.Resource) || more.Key.Resource == st.ClaimsIn && st.ClaimsIn != "" && more.Verb != sqlstore.Update {
		return st.Allocate != nil
	}
	return op.Verb == sqlstore.Delete && more.Verb == sqlstore.Delete && more.Key.Resource != "" &&
		more.Key == sqlstore.Key{Resource: st.DeleteAlso, Namespace: op.Key.Namespace, Name: op.Key.Name}
}
