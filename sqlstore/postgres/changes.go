package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// Changes implements sqlstore.Driver.
func (d *Driver) Changes(ctx context.Context, after int64, limit int, previous bool) (changes []sqlstore.Change, err error) {
	if limit <= 0 {
		return nil, nil
	}
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	query := qChanges
	if previous {
		query = qChangesPrev
	}
	cut := false
	b, err := d.snapshot(ctx, func(batch *pgx.Batch) {
		batch.Queue(query, after, after+int64(limit)).Query(func(rows pgx.Rows) (err error) {
			changes, cut, err = collectChanges(rows)
			return err
		})
	})
	if err == nil && after < b.Floor {
		err = &sqlstore.CompactedError{Revision: after, Floor: b.Floor}
	}
	if err == nil {
		want := min(int64(limit), b.Head-after)
		if cut {
			want = int64(len(changes))
		}
		err = contiguous(changes, after, want)
	}
	if err != nil {
		return nil, fmt.Errorf("reading changes after %d: %w", after, err)
	}
	if len(changes) > 0 {
		d.raise(changes[len(changes)-1].Revision)
	}
	return changes, nil
}

// LastChanges implements sqlstore.Driver.
func (d *Driver) LastChanges(ctx context.Context, after, upTo int64) (last map[string]int64, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	last = make(map[string]int64)
	b, err := d.snapshot(ctx, func(batch *pgx.Batch) {
		batch.Queue(qLastChanges, after, upTo).Query(func(rows pgx.Rows) error {
			var resource string
			var revision int64
			_, err := pgx.ForEachRow(rows, []any{&resource, &revision}, func() error { last[resource] = revision; return nil })
			return err
		})
	})
	if err == nil && after < b.Floor {
		err = &sqlstore.CompactedError{Revision: after, Floor: b.Floor}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last changes up to %d: %w", upTo, err)
	}
	return last, nil
}

// collectChanges reads changes until there are none, or until they have ChangesBytes: then there may be more.
func collectChanges(rows pgx.Rows) (out []sqlstore.Change, cut bool, err error) {
	defer rows.Close()
	var s scanner
	for bytes := 0; rows.Next(); {
		if bytes >= sqlstore.ChangesBytes {
			return out, true, nil
		}
		var c sqlstore.Change
		var prev *int64
		row, err := s.row(rows, &prev, &c.PrevValue)
		if err != nil {
			return nil, false, err
		}
		c.Row = row
		if prev != nil {
			c.PrevRevision = *prev
		}
		out, bytes = append(out, c), bytes+c.Bytes()
	}
	return out, false, rows.Err()
}

// contiguous checks that nothing is missing from the log.
func contiguous(changes []sqlstore.Change, after, want int64) error {
	for i := range changes {
		if expect := after + int64(i) + 1; changes[i].Revision != expect {
			return &sqlstore.CorruptError{Key: changes[i].Key, Revision: expect, Reason: fmt.Sprintf("the log continues with revision %d", changes[i].Revision)}
		}
	}
	if int64(len(changes)) < want {
		return &sqlstore.CorruptError{Revision: after + int64(len(changes)) + 1, Reason: "the log ends before its head"}
	}
	return nil
}
