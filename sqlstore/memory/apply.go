package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Apply implements sqlstore.Driver.
func (d *Driver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) (out []sqlstore.Outcome, err error) {
	err = d.change(ctx, func(next *content) error {
		a := applier{content: next, at: micros(now), most: d.db.cfg.MaxBytes}
		out, err = a.run(batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("writing a batch: %w", err)
	}
	return out, nil
}

// Resolve implements sqlstore.Driver. There is no commit whose outcome is unknown.
func (d *Driver) Resolve(ctx context.Context) ([]sqlstore.Outcome, bool, error) {
	_, err := d.look(ctx)
	return nil, false, err
}

// applier writes one batch into a content that is not published yet.
type applier struct {
	*content
	at   time.Time
	most int64
}

func (a *applier) run(batch []sqlstore.Txn) ([]sqlstore.Outcome, error) {
	out, full := make([]sqlstore.Outcome, len(batch)), 0
	for i := range batch {
		ops := batch[i].Ops
		if err := a.check(ops); err != nil {
			if errors.Is(err, sqlstore.ErrFull) {
				full++
			}
			out[i] = sqlstore.Outcome{Err: err}
			continue
		}
		revisions := make([]int64, 2*len(ops))
		out[i] = sqlstore.Outcome{Revisions: revisions[:len(ops):len(ops)], Created: revisions[len(ops):], WrittenAt: a.at}
		for j := range ops {
			row, err := a.write(&ops[j])
			if err != nil {
				return nil, fmt.Errorf("after its conditions held: %w", err)
			}
			out[i].Revisions[j], out[i].Created[j] = row.Revision, row.Created
		}
	}
	if full > 0 && full == len(batch) { // the database refuses the batch, and not one operation
		return nil, out[0].Err
	}
	return out, nil
}

// check returns an error unless all Ops of a Txn may be written.
func (a *applier) check(ops []sqlstore.Op) error {
	grows := int64(0)
	for i := range ops {
		op := &ops[i]
		if _, err := a.current(op); err != nil {
			return err
		}
		if op.Verb != sqlstore.Delete { // which is how room is made
			grows += weight(&sqlstore.Row{Key: op.Key, Value: op.Value})
		}
	}
	if a.most > 0 && grows > 0 && a.bytes+grows > a.most {
		return fmt.Errorf("%w: %d of %d bytes are used, history included", sqlstore.ErrFull, a.bytes, a.most)
	}
	return nil
}

// current returns the live row that an Op ends, if its condition holds.
func (a *applier) current(op *sqlstore.Op) (*sqlstore.Row, error) {
	row := a.find(&op.Key)
	switch {
	case op.Verb == sqlstore.Create && row != nil:
		return nil, &sqlstore.ExistsError{Key: op.Key, Current: copyForCaller(row)}
	case op.Verb == sqlstore.Create:
		return nil, nil
	case row == nil:
		return nil, &sqlstore.NotFoundError{Key: op.Key}
	case row.Revision != op.Expect:
		return nil, &sqlstore.ConflictError{Key: op.Key, Expect: op.Expect, Current: copyForCaller(row)}
	}
	return row, nil
}

func (a *applier) write(op *sqlstore.Op) (*sqlstore.Row, error) {
	old, err := a.current(op)
	if err != nil {
		return nil, err
	}
	row := &sqlstore.Row{Revision: a.bounds.Head + 1, Created: a.bounds.Head + 1, Value: op.Value, ExpiresAt: micros(op.ExpiresAt), WrittenAt: a.at}
	if !op.Immutable {
		row.Value = bytes.Clone(op.Value)
	}
	if old != nil {
		row.Key, row.Created = old.Key, old.Created
	} else {
		row.Key = a.ownKey(op.Key)
	}
	if op.Verb == sqlstore.Delete {
		row.Deleted, row.Superseded, row.ExpiresAt = true, row.Revision, time.Time{}
		if bytes.Equal(row.Value, old.Value) {
			row.Value = old.Value
		}
	}
	a.add(row, old)
	return row, nil
}
