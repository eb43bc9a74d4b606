package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

// Snapshot is the state of a database at one moment. It does not change.
type Snapshot struct {
	content *content
	cfg     Config
}

// Snapshot keeps the present content.
func (b *Database) Snapshot() *Snapshot { return &Snapshot{content: b.content.Load(), cfg: b.cfg} }

// Clone makes a database of a snapshot.
func (s *Snapshot) Clone() *Database { return newDatabase(s.cfg, s.content) }

// Revision returns the newest one of the snapshot.
func (s *Snapshot) Revision() int64 { return s.content.bounds.Head }

// Writer receives the writes of Reset; sqlstore.Store implements it.
type Writer interface {
	Write(ctx context.Context, ops ...sqlstore.Op) (sqlstore.Outcome, error)
}

// maxResets bounds how often Reset compares again because others wrote in between.
const maxResets = 20

// Reset restores the live objects of a snapshot, by writing the differences: revisions continue, and every
// server on the database, through w or another Store, sees the change of each object. An object that was
// deleted and created again since is deleted and created once more. Concurrent writes to an object may win.
// Errors: those of w.
func (b *Database) Reset(ctx context.Context, to *Snapshot, w Writer) error {
	var last error
	for range maxResets {
		first, second := b.content.Load().differences(to.content)
		if len(first)+len(second) == 0 {
			return nil
		}
		last = nil
		for _, ops := range [][]sqlstore.Op{first, second} {
			for part := range slices.Chunk(ops, 1000) {
				_, err := w.Write(ctx, part...)
				if last = err; err != nil {
					break
				}
			}
			if last != nil {
				break
			}
		}
		if _, unmet := sqlstore.Unmet(last); last != nil && !unmet {
			return fmt.Errorf("resetting to revision %d: %w", to.Revision(), last)
		}
	}
	if last != nil {
		return fmt.Errorf("resetting to revision %d, while others write: %w", to.Revision(), last)
	}
	return nil
}

// differences returns the Ops that turn the live objects of c into those of another content: first the deletes,
// then the rest.
func (c *content) differences(to *content) (first, second []sqlstore.Op) {
	is, want := c.live.Iter(), to.live.Iter()
	defer is.Release()
	defer want.Release()
	more, wanted := is.First(), want.First()
	for more || wanted {
		order := 0
		switch {
		case !wanted:
			order = -1
		case !more:
			order = 1
		default:
			order = compare(&is.Item().Key, &want.Item().Key)
		}
		switch {
		case order < 0:
			first = append(first, undo(sqlstore.Delete, is.Item(), is.Item()))
		case order > 0:
			second = append(second, undo(sqlstore.Create, nil, want.Item()))
		default:
			old, row := is.Item(), want.Item()
			switch {
			case old == row || bytes.Equal(old.Value, row.Value) && old.ExpiresAt.Equal(row.ExpiresAt):
			case old.Created == row.Created:
				second = append(second, undo(sqlstore.Update, old, row))
			default:
				first = append(first, undo(sqlstore.Delete, old, old))
				second = append(second, undo(sqlstore.Create, nil, row))
			}
		}
		if order <= 0 {
			more = is.Next()
		}
		if order >= 0 {
			wanted = want.Next()
		}
	}
	return first, second
}

// undo returns an Op that writes the state of a row in the place of another.
func undo(verb sqlstore.Verb, old, row *sqlstore.Row) sqlstore.Op {
	op := sqlstore.Op{Verb: verb, Key: row.Key, Value: row.Value, ExpiresAt: row.ExpiresAt, AsStored: true}
	if old != nil {
		op.Expect = old.Revision
	}
	return op
}
