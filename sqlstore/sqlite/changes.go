package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// Changes implements sqlstore.Driver.
func (d *Driver) Changes(ctx context.Context, after int64, limit int, previous bool) (changes []sqlstore.Change, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if after < b.Floor {
			return &sqlstore.CompactedError{Revision: after, Floor: b.Floor}
		}
		limit = int(min(int64(limit), b.Head-after))
		if limit <= 0 {
			return nil
		}
		changes, err = readChanges(ctx, c, after, limit, previous)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading changes after %d: %w", after, err)
	}
	return changes, nil
}

// LastChanges implements sqlstore.Driver.
func (d *Driver) LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error) {
	last := make(map[string]int64)
	err := d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if after < b.Floor {
			return &sqlstore.CompactedError{Revision: after, Floor: b.Floor}
		}
		return c.query(ctx, func(v []driver.Value) error {
			resource, _ := v[0].(string)
			last[resource], _ = v[1].(int64)
			return nil
		}, qLastChanges, after, upTo)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the last changes up to %d: %w", upTo, err)
	}
	return last, nil
}

func readChanges(ctx context.Context, c *conn, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	query := qChanges
	if previous {
		query = qChangesPrev
	}
	changes := make([]sqlstore.Change, 0, limit)
	dec := decoder{c: c}
	bytes := 0
	err := c.query(ctx, func(v []driver.Value) error {
		row, err := dec.row(v)
		if err != nil {
			return err
		}
		if want := after + int64(len(changes)) + 1; row.Revision != want {
			return &sqlstore.CorruptError{Key: row.Key, Revision: want, Reason: fmt.Sprintf("the log continues with revision %d", row.Revision)}
		}
		change := sqlstore.Change{Row: row}
		change.PrevRevision, _ = v[11].(int64)
		if previous && change.PrevRevision != 0 {
			before, err := dec.row(v[11:])
			if err != nil {
				return err
			}
			change.PrevValue, change.PrevDamaged = before.Value, before.Damaged
		}
		changes = append(changes, change)
		if bytes += change.Bytes(); bytes >= sqlstore.ChangesBytes {
			return errEnough
		}
		return nil
	}, query, after, int64(limit))
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case err == nil && len(changes) < limit:
		err = &sqlstore.CorruptError{Revision: after + int64(len(changes)) + 1, Reason: "the log ends before its head"}
	}
	return changes, err
}
