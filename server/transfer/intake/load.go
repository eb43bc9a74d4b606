package intake

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// Load fills an empty database with the rows of the spool, in one transaction. Errors: sqlstore.ErrNotEmpty,
// archive.ErrDamaged, and those of the driver; after any of them but sqlstore.ErrUncertain the database is as empty as before.
func (s *Spooled) Load(ctx context.Context, d sqlstore.Driver, progress func(rows int64)) error {
	f, err := os.Open(s.Path + rowsEnd)
	if err != nil {
		return fmt.Errorf("the file between: %w", err)
	}
	defer f.Close()
	_, rows, err := archive.Rows(f)
	if err != nil {
		return err
	}
	return d.Load(ctx, sqlstore.Content{
		Bounds: sqlstore.Bounds{Floor: s.Head, Head: s.Head},
		Rows:   s.numbered(rows, progress),
	})
}

// numbered assigns revisions to the rows that have none, or share one: the first object of a revision keeps
// it.
func (s *Spooled) numbered(rows iter.Seq2[sqlstore.Row, error], progress func(int64)) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		met := make(map[int64]bool, len(s.Repeated))
		for _, r := range s.Repeated {
			met[r] = false
		}
		next, n := s.SourceRevision, int64(0)
		for row, err := range rows {
			if err != nil {
				yield(row, err)
				return
			}
			before, repeated := met[row.Revision]
			claim := strings.HasPrefix(row.Key.Resource, "~")
			if claim || repeated && before {
				next++
				row.Revision = next
			}
			if claim {
				row.Created = row.Revision
			} else if repeated && !before {
				met[row.Revision] = true
			}
			if next >= s.Head {
				yield(row, fmt.Errorf("%w: more rows without a revision than were counted", archive.ErrDamaged))
				return
			}
			if !yield(row, nil) {
				return
			}
			if n++; progress != nil && n%progressEvery == 0 {
				progress(n)
			}
		}
	}
}
