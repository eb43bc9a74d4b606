package objects

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

// Write is a write of an object, as the table has it.
type Write struct {
	Item       *cache.Item // the written state; for a delete the last one
	Superseded int64       // the next write; 0: none
	Deleted    bool
	WrittenAt  time.Time
}

// Created reports whether the write created the object.
func (w *Write) Created() bool { return !w.Deleted && w.Item.Revision == w.Item.Created() }

// Past reads writes of one object from the table, newest first, up to limit of those below a revision (0:
// from the newest). It needs a permit to get the object, as the object itself does.
func (s *Store) Past(ctx context.Context, p permits.Permit, at Place, before int64, limit int) ([]Write, error) {
	if err := at.check(&p, permits.Get); err != nil {
		return nil, err
	}
	rows, err := s.store.Past(ctx, at.Key(), before, limit)
	if err != nil {
		return nil, err
	}
	writes, home := make([]Write, len(rows)), s.Home(at.Resource.Storage)
	for i := range rows {
		row := &rows[i]
		writes[i] = Write{
			Item: cache.NewItem(s.cache.JSON(), row, home), Deleted: row.Deleted, WrittenAt: row.WrittenAt,
		}
		if !row.Deleted {
			writes[i].Superseded = row.Superseded
		}
	}
	return writes, nil
}

// PastFloor returns the oldest revision at which all objects of a resource can be read. Writes superseded at it or
// before are not kept.
func (s *Store) PastFloor(r *kinds.Resource) int64 { return s.store.PastFloor(r.Storage.Key) }

// AskPastFloor is PastFloor as the database has it now.
func (s *Store) AskPastFloor(ctx context.Context, r *kinds.Resource) (int64, error) {
	return s.store.AskPastFloor(ctx, r.Storage.Key)
}

// NamespaceCreated returns the revision that created the present namespace of that name; 0: there is none. Older
// states belong to an earlier namespace.
func (s *Store) NamespaceCreated(name string) int64 {
	if name == "" {
		return 0
	}
	if item := s.cache.Get("namespaces", "", name); item != nil {
		return item.Created()
	}
	return 0
}

// Oldest returns the first revision at which the objects of all resources can be read.
func (s *Store) Oldest() int64 { return s.store.PastFloor("") }

// RevisionAt returns the newest revision that was written at or before a time; if all kept revisions are newer,
// the floor.
func (s *Store) RevisionAt(ctx context.Context, t time.Time) (int64, error) {
	return s.store.RevisionAt(ctx, t)
}

// Since returns the earliest time from which on RevisionAt returns the revision or a newer one; ok is false if
// that is no longer known.
func (s *Store) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	return s.store.Since(ctx, revision)
}

// WrittenAt returns when a revision was written; ok is false if that is no longer known.
func (s *Store) WrittenAt(ctx context.Context, revision int64) (t time.Time, ok bool) {
	if revision < 1 {
		return t, false
	}
	changes, err := s.store.Changes(ctx, revision-1, 1, false)
	if err != nil || len(changes) == 0 || changes[0].Revision != revision {
		return t, false
	}
	return changes[0].WrittenAt, true
}
