package objects

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

// Write is one write of an object, as it lies in the table.
type Write struct {
	Item       *cache.Item // what was written; of a delete the last state
	Superseded int64       // the write that came after; 0 for none
	Deleted    bool
	WrittenAt  time.Time
}

// Made says that the write made the object.
func (w *Write) Made() bool { return !w.Deleted && w.Item.Revision == w.Item.Created }

// Past reads writes of one object from the table, the newest first, up to limit of those below
// a revision (0: from the newest). The permit is one to get the object: its past is as much
// as it is.
func (s *Store) Past(ctx context.Context, p permits.Permit, at Place, before int64, limit int) ([]Write, error) {
	if err := at.check(&p, permits.Get); err != nil {
		return nil, err
	}
	rows, err := s.store.Past(ctx, at.Key(), before, limit)
	if err != nil {
		return nil, err
	}
	writes, home := make([]Write, len(rows)), s.home(at.Resource.Storage)
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

// PastFloor is the oldest revision at which all objects of a resource can be read. A write
// that was superseded at it or before is not kept.
func (s *Store) PastFloor(r *kinds.Resource) int64 { return s.store.PastFloor(r.Storage.Key) }

// NamespaceMade is the revision with which the namespace of a name was made that there is now; 0
// for none. What held before was in another namespace of that name.
func (s *Store) NamespaceMade(name string) int64 {
	if name == "" {
		return 0
	}
	if item := s.cache.Get("namespaces", "", name); item != nil {
		return item.Created
	}
	return 0
}

// Oldest is the first revision at which the objects of all resources can be read.
func (s *Store) Oldest() int64 { return s.store.PastFloor("") }

// RevisionAt is the newest revision that was written at or before a time; where all that is
// kept is newer, the floor.
func (s *Store) RevisionAt(ctx context.Context, t time.Time) (int64, error) {
	return s.store.RevisionAt(ctx, t)
}

// Since is the earliest time from which on RevisionAt knows that a revision, or a newer one, had been written;
// ok is false where that is not known any more.
func (s *Store) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	return s.store.Since(ctx, revision)
}

// WrittenAt is when a revision was written; ok is false where that is not known any more.
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
