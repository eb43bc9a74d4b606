package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// Floors implements sqlstore.Driver.
func (d *Driver) Floors(ctx context.Context) (f sqlstore.Floors, err error) {
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	var past string
	b, err := d.snapshot(ctx, queueFloors(&past))
	if err == nil {
		f, err = sqlstore.ParseFloors(past, b.Floor)
	}
	if err != nil {
		return f, fmt.Errorf("reading floors: %w", err)
	}
	return f, nil
}

// queueFloors reads what ParseFloors takes.
func queueFloors(past *string) func(*pgx.Batch) {
	return func(batch *pgx.Batch) {
		batch.Queue(qFloors).QueryRow(func(row pgx.Row) error { return row.Scan(past) })
	}
}

// check says whether a snapshot can be read.
func check(b sqlstore.Bounds, past, resource string, revision int64) error {
	f, err := sqlstore.ParseFloors(past, b.Floor)
	if err == nil {
		err = f.Check(resource, revision, b.Head)
	}
	return err
}

func collectPacks(rows pgx.Rows) (packs []pack.Pack, err error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p pack.Pack, err error) {
		err = row.Scan(&p.Key.Resource, &p.Key.Namespace, &p.Key.Name, &p.First, &p.Until, &p.Created, &p.Deleted, &p.Count, &p.Written, &p.Text)
		return p, err
	})
}

// intoPacks makes a callback that carries packs out.
func intoPacks(dst *[]pack.Pack) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*dst, err = collectPacks(rows)
		return err
	}
}

func queryPacks(ctx context.Context, q querier, sql string, args ...any) ([]pack.Pack, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return collectPacks(rows)
}

// unfold appends the rows of a snapshot that packs have, in key order.
func unfold(rows []sqlstore.Row, packs []pack.Pack, revision int64) ([]sqlstore.Row, error) {
	for i := range packs {
		row, found, err := packs[i].At(revision)
		if err != nil {
			return nil, err
		}
		if found {
			rows = append(rows, row)
		}
	}
	if len(packs) > 0 {
		slices.SortFunc(rows, func(a, b sqlstore.Row) int { return a.Key.Compare(b.Key) })
	}
	return rows, nil
}

// pastPacked appends the rows of a key below a revision and above a floor, newest first.
func pastPacked(ctx context.Context, q querier, rows []sqlstore.Row, key sqlstore.Key, before, floor int64, limit int) ([]sqlstore.Row, error) {
	packs, err := queryPacks(ctx, q, qPacked, before-1, key.Resource, key.Namespace, key.Name)
	const some = 4
	for next := before; err == nil && len(rows) < limit; {
		for i := range packs {
			if packs[i].First >= before {
				continue
			}
			unfolded, err := packs[i].Rows()
			if err != nil {
				return nil, err
			}
			for _, row := range slices.Backward(unfolded) {
				if row.Revision < before && row.Superseded > floor && len(rows) < limit {
					rows = append(rows, row)
				}
			}
		}
		if packs, err = queryPacks(ctx, q, qPackedBelow, next, key.Resource, key.Namespace, key.Name, floor, some); len(packs) == 0 {
			break
		}
		next = packs[len(packs)-1].Until
	}
	return rows, err
}

// reading runs fn in a snapshot, with the bounds and floors that it has.
func (d *Driver) reading(ctx context.Context, fn func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) error) error {
	return pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		b, f, err := floors(ctx, tx)
		if err != nil {
			return err
		}
		return fn(tx, b, f)
	})
}

func floors(ctx context.Context, tx pgx.Tx) (b sqlstore.Bounds, f sqlstore.Floors, err error) {
	if err = tx.QueryRow(ctx, qBounds).Scan(&b.Floor, &b.Head); err != nil {
		return b, f, err
	}
	var past string
	if err = tx.QueryRow(ctx, qFloors).Scan(&past); err == nil {
		f, err = sqlstore.ParseFloors(past, b.Floor)
	}
	return b, f, err
}

// unitBytes is how much of one object is packed at once, and a row.
const unitBytes = 1 << 20

// endedRows reads the oldest rows of a key that ended from one revision to another. more says
// that there may be others.
func endedRows(ctx context.Context, tx pgx.Tx, key sqlstore.Key, from, upTo int64, limit int) (found []sqlstore.Row, more bool, err error) {
	rows, err := tx.Query(ctx, qEndedRows, from, key.Resource, key.Namespace, key.Name, upTo, limit)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var s scanner
	size := 0
	for size <= unitBytes && rows.Next() {
		row, err := s.row(rows)
		if err != nil {
			return nil, false, err
		}
		found = append(found, row)
		size += len(row.Value)
	}
	rows.Close()
	return found, len(found) == limit || size > unitBytes, rows.Err()
}

func nextKey(ctx context.Context, tx pgx.Tx, sql string, k sqlstore.Key) (key sqlstore.Key, found bool, err error) {
	err = tx.QueryRow(ctx, sql, k.Resource, k.Namespace, k.Name).Scan(&key.Resource, &key.Namespace, &key.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return key, false, nil
	}
	return key, err == nil, err
}

// Older implements sqlstore.Driver.
func (d *Driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, _ sqlstore.Bounds, f sqlstore.Floors) (err error) {
		for more := true; err == nil && more && len(rows) < limit; {
			floor := f.Of(after.Key.Resource)
			var found []sqlstore.Row
			if found, err = olderOf(ctx, tx, after, max(floor, after.Revision), upTo, limit-len(rows)); err != nil {
				break
			}
			for _, row := range found {
				after.Revision = row.Revision
				if row.Superseded > floor {
					rows = append(rows, row)
				}
			}
			if len(found) == 0 {
				more, err = olderKey(ctx, tx, &after)
			}
		}
		return err
	})
	var corrupt *sqlstore.CorruptError
	if err != nil && (len(rows) == 0 || !errors.As(err, &corrupt)) { // what was before it comes first
		return nil, fmt.Errorf("reading history: %w", err)
	}
	return rows, nil
}

// olderOf reads rows of one key, behind a revision: the rest of a pack, or from kv.
func olderOf(ctx context.Context, tx pgx.Tx, after sqlstore.Cursor, from, upTo int64, limit int) (rows []sqlstore.Row, err error) {
	k := after.Key
	behind := func(row sqlstore.Row) bool { return row.Revision <= after.Revision || row.Superseded > upTo }
	for until := from; len(rows) == 0; {
		packs, err := queryPacks(ctx, tx, qPacked, until, k.Resource, k.Namespace, k.Name)
		if err != nil {
			return nil, err
		}
		if len(packs) == 0 {
			rows, _, err = endedRows(ctx, tx, k, from, upTo, limit+2) // of which two may be those before
			rows = slices.DeleteFunc(rows, behind)
			return rows[:min(limit, len(rows))], err
		}
		if rows, err = packs[0].Rows(); err != nil {
			return nil, err
		}
		rows, until = slices.DeleteFunc(rows, behind), packs[0].Until
	}
	return rows[:min(limit, len(rows))], nil
}

// olderKey moves to the next key that has ended rows or packs.
func olderKey(ctx context.Context, tx pgx.Tx, after *sqlstore.Cursor) (bool, error) {
	ended, found1, err1 := nextKey(ctx, tx, qNextEnded, after.Key)
	packed, found2, err2 := nextKey(ctx, tx, qNextPacked, after.Key)
	if found2 && (!found1 || packed.Compare(ended) < 0) {
		ended = packed
	}
	*after = sqlstore.Cursor{Key: ended}
	return found1 || found2, errors.Join(err1, err2)
}
