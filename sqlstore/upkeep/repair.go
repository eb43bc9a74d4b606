package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Damage is a live row whose value is not the object of its key.
type Damage struct {
	Row    sqlstore.Row
	Reason error         // nil: nothing is wrong with it
	Good   *sqlstore.Row // the newest state before it that is right; nil where history has none
}

// Damages finds every live row that judge objects to, as of now, in key order.
// progress may be nil.
func Damages(ctx context.Context, d sqlstore.Driver, judge func(sqlstore.Row) error, progress func(rows int64)) (found []Damage, err error) {
	window, release, err := Hold(ctx, d)
	if err != nil {
		return nil, err
	}
	defer release()
	var rows int64
	err = Snapshot(ctx, d, window.Head, func(page []sqlstore.Row) error {
		for _, row := range page {
			if reason := judge(row); reason != nil {
				found = append(found, Damage{Row: row, Reason: reason})
			}
		}
		if rows += int64(len(page)); progress != nil {
			progress(rows)
		}
		return nil
	})
	for i := range found {
		if err == nil {
			found[i].Good, err = lastGood(ctx, d, &found[i].Row, judge)
		}
	}
	return found, err
}

// Find looks at the row that a key's text names: RESOURCE/NAMESPACE/NAME or
// RESOURCE/NAME, as keys are printed. Errors: NotFoundError.
func Find(ctx context.Context, d sqlstore.Driver, text string, judge func(sqlstore.Row) error) (*Damage, error) {
	resource, rest, ok := strings.Cut(text, "/")
	if !ok || resource == "" {
		return nil, fmt.Errorf("%q is not a key: want RESOURCE/NAMESPACE/NAME, or RESOURCE/NAME where there is no namespace", text)
	}
	keys := []sqlstore.Key{{Resource: resource, Name: rest}}
	if namespace, name, ok := strings.Cut(rest, "/"); ok {
		keys = append([]sqlstore.Key{{Resource: resource, Namespace: namespace, Name: name}}, keys...)
	}
	for _, key := range keys {
		row, err := d.Read(ctx, key, 0)
		if _, ok := errors.AsType[*sqlstore.NotFoundError](err); ok {
			continue
		}
		if err != nil {
			return nil, err
		}
		found := &Damage{Row: row, Reason: judge(row)}
		found.Good, err = lastGood(ctx, d, &row, judge)
		return found, err
	}
	return nil, &sqlstore.NotFoundError{Key: keys[0]}
}

// lastGood goes back through the kept history of a row's object, to its create at most.
func lastGood(ctx context.Context, d sqlstore.Driver, row *sqlstore.Row, judge func(sqlstore.Row) error) (*sqlstore.Row, error) {
	for at := row.Revision - 1; at > 0; {
		before, err := d.Read(ctx, row.Key, at)
		var none *sqlstore.NotFoundError
		var compacted *sqlstore.CompactedError
		switch {
		case errors.As(err, &none), errors.As(err, &compacted):
			return nil, nil
		case err != nil:
			return nil, err
		case before.Deleted || before.Created != row.Created:
			return nil, nil // of an object of that name that was deleted
		case judge(before) == nil:
			return &before, nil
		}
		at = before.Revision - 1
	}
	return nil, nil
}

// Delete removes rows together the way that servers do, so that they hear of it. It returns the
// revision of the first delete. Errors: ConflictError or NotFoundError if another process was
// faster.
func Delete(ctx context.Context, d sqlstore.Driver, rows ...sqlstore.Row) (revision int64, err error) {
	ops := make([]sqlstore.Op, len(rows))
	for i, row := range rows {
		ops[i] = sqlstore.Op{Verb: sqlstore.Delete, Key: row.Key, Expect: row.Revision, Value: row.Value, Damaged: row.Damaged != nil}
	}
	return write(ctx, d, ops...)
}

// Rollback replaces a row's object by an earlier state, as a new revision. Errors: as Delete.
func Rollback(ctx context.Context, d sqlstore.Driver, row, to sqlstore.Row) (revision int64, err error) {
	return write(ctx, d, sqlstore.Op{Verb: sqlstore.Update, Key: row.Key, Expect: row.Revision, Value: to.Value, ExpiresAt: to.ExpiresAt})
}

// write commits operations together, and resolves an unknown outcome.
func write(ctx context.Context, d sqlstore.Driver, ops ...sqlstore.Op) (int64, error) {
	out, err := commit(ctx, d, []sqlstore.Txn{{Ops: ops}})
	switch {
	case err != nil:
		return 0, err
	case out[0].Err != nil:
		return 0, out[0].Err
	}
	return out[0].Revisions[0], nil
}

// commit writes a batch, and resolves an unknown outcome. A batch of several Txns has no large values: each could take all room for
// staged ones.
func commit(ctx context.Context, d sqlstore.Driver, batch []sqlstore.Txn) (out []sqlstore.Outcome, err error) {
	for i := range batch {
		ops := batch[i].Ops
		if err := d.Stage(ctx, ops); err != nil {
			return nil, err
		}
		defer func() { d.Unstage(ops, err == nil && out[i].Err == nil) }()
	}
	return apply(ctx, d, batch)
}

// resolveFor is how long apply looks for an unknown outcome: longer than a failover takes.
const resolveFor = 30 * time.Second

// apply is commit without staging. An outcome that cannot be found is ErrUncertain, whatever is in the way.
func apply(ctx context.Context, d sqlstore.Driver, batch []sqlstore.Txn) ([]sqlstore.Outcome, error) {
	const tries = 20
	uncertain := false // the driver forgets the outcome when the next batch comes
	began := time.Now()
	for try := 1; ; try++ {
		var out []sqlstore.Outcome
		var err error
		if !uncertain {
			out, err = d.Apply(ctx, batch, d.Now())
			uncertain = errors.Is(err, sqlstore.ErrUncertain)
		}
		if uncertain {
			var committed bool
			if out, committed, err = d.Resolve(ctx); err == nil && !committed {
				uncertain, err = false, sqlstore.ErrBusy
			}
		}
		again := errors.Is(err, sqlstore.ErrBusy) && try < tries
		switch {
		case err == nil:
			return out, nil
		case errors.Is(err, sqlstore.ErrUncertain): // forever
			again = false
		case uncertain:
			again, err = time.Since(began) < resolveFor, fmt.Errorf("%w: %w", sqlstore.ErrUncertain, err)
		}
		if !again {
			return nil, err
		}
		if !sqlstore.Sleep(ctx, 100*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}
