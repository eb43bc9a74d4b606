package upkeep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// pastPage is the number of past states that are read at once: as many as one pack may have, and the same again.
const pastPage = 256

// past encrypts the history like new rows, including rows below the floors that are not deleted yet. It does not change
// the form of the objects. It skips resources that are not, and never were, encrypted.
func (r *Rewrite) past(ctx context.Context, d sqlstore.Driver, resource string, done *Rewritten) error {
	if resource != "" && !r.Keys.Covers(resource) {
		return nil
	}
	if _, err := d.ReplaceEnded(ctx, nil); errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	after := sqlstore.Cursor{Key: sqlstore.Key{Resource: resource}}
	for {
		rows, err := d.AllEnded(ctx, after, pastPage)
		var corrupt *sqlstore.CorruptError
		if errors.As(err, &corrupt) && behind(corrupt, after) {
			done.PastLeft++
			done.reason(corrupt.Key, corrupt.Revision, err)
			after = sqlstore.Cursor{Key: corrupt.Key, Revision: corrupt.Revision}
			continue
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		for of := range byKey(rows) {
			after = sqlstore.Cursor{Key: of[0].Key, Revision: of[len(of)-1].Revision}
			if resource != "" && after.Key.Resource != resource {
				return nil
			}
			if !r.Keys.Covers(after.Key.Resource) {
				after = sqlstore.Cursor{Key: sqlstore.Key{Resource: after.Key.Resource + "\x01"}} // before the next resource: no name has this character
				break
			}
			if err := r.pastOf(ctx, d, of, done); err != nil {
				return err
			}
		}
		if r.Progress != nil {
			r.Progress(*done)
		}
	}
}

// byKey yields the rows of one key after another, of rows that are ordered by it.
func byKey(rows []sqlstore.Row) func(yield func([]sqlstore.Row) bool) {
	return func(yield func([]sqlstore.Row) bool) {
		for len(rows) > 0 {
			n := slices.IndexFunc(rows, func(row sqlstore.Row) bool { return row.Key != rows[0].Key })
			if n < 0 {
				n = len(rows)
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}

// pastOf rewrites the past states of one object if necessary.
func (r *Rewrite) pastOf(ctx context.Context, d sqlstore.History, rows []sqlstore.Row, done *Rewritten) error {
	began := time.Now()
	var stale []sqlstore.Row
	for i := range rows {
		done.Past++
		value, err := r.sealed(ctx, &rows[i], nil)
		var sealing *sqlstore.SealError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &sealing):
			return err
		case err != nil:
			done.PastLeft++
			done.reason(rows[i].Key, rows[i].Revision, err)
		case value != nil:
			rows[i].Value = value
			stale = append(stale, rows[i])
		}
	}
	if len(stale) == 0 {
		return nil
	}
	n, err := d.ReplaceEnded(ctx, stale)
	var corrupt *sqlstore.CorruptError
	switch {
	case errors.As(err, &corrupt):
		done.PastLeft += int64(len(stale))
		done.reason(corrupt.Key, corrupt.Revision, err)
		return nil
	case errors.Is(err, sqlstore.ErrBusy): // a server packs; the next pass meets them again
		done.busy = true
		return nil
	case err != nil:
		return err
	}
	done.PastWritten += int64(n)
	done.busy = done.busy || n < len(stale) // they were deleted or packed in the meantime; the next pass shows it
	return r.slowed(ctx, n, began)
}
