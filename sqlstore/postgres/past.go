package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"

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

// queueFloors reads the text for ParseFloors.
func queueFloors(past *string) func(*pgx.Batch) {
	return func(batch *pgx.Batch) {
		batch.Queue(qFloors).QueryRow(func(row pgx.Row) error { return row.Scan(past) })
	}
}

// check returns an error if a snapshot cannot be read.
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

// history implements pack.Snapshot in a transaction.
type history struct{ tx pgx.Tx }

func (h history) Around(ctx context.Context, key sqlstore.Key, revision int64) (*pack.Pack, error) {
	rows, err := h.tx.Query(ctx, qPacked, revision, key.Resource, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	packs, err := collectPacks(rows)
	if err != nil || len(packs) == 0 {
		return nil, err
	}
	return &packs[0], nil
}

func (h history) Below(ctx context.Context, key sqlstore.Key, revision, floor int64, limit int) ([]pack.Pack, error) {
	rows, err := h.tx.Query(ctx, qPackedBelow, revision, key.Resource, key.Namespace, key.Name, floor, limit)
	if err != nil {
		return nil, err
	}
	return collectPacks(rows)
}

// Stays implements pack.Snapshot: packing a large value delays no other writer.
func (history) Stays(*sqlstore.Row) bool { return false }

func (h history) NextEnded(ctx context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	return nextKey(ctx, h.tx, qNextEnded, after)
}

func (h history) NextPacked(ctx context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	return nextKey(ctx, h.tx, qNextPacked, after)
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
		sort.Slice(rows, func(i, j int) bool { return rows[i].Key.Compare(rows[j].Key) < 0 })
	}
	return rows, nil
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

// lockedFloors takes the lock for raising the floors, and reads them.
func lockedFloors(ctx context.Context, tx pgx.Tx) (b sqlstore.Bounds, f sqlstore.Floors, err error) {
	if _, err := tx.Exec(ctx, qLockFloors); err != nil {
		return b, f, err
	}
	return floors(ctx, tx)
}

// unitBytes bounds how much of one object is packed at once, and a row.
const unitBytes = 1 << 20

func (h history) Ended(ctx context.Context, key sqlstore.Key, written, from, upTo int64, limit int) (found []sqlstore.Row, more bool, err error) {
	rows, err := h.tx.Query(ctx, qEndedRows, from, key.Resource, key.Namespace, key.Name, upTo, limit, written)
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
func (d *Driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	return d.ended(ctx, func(f sqlstore.Floors) sqlstore.Floors { return f }, upTo, after, limit)
}

// AllEnded implements sqlstore.Driver.
func (d *Driver) AllEnded(ctx context.Context, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	return d.ended(ctx, func(sqlstore.Floors) sqlstore.Floors { return sqlstore.Floors{} }, math.MaxInt64, after, limit)
}

func (d *Driver) ended(ctx context.Context, above func(sqlstore.Floors) sqlstore.Floors, upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, _ sqlstore.Bounds, f sqlstore.Floors) (err error) {
		f = above(f)
		rows, err = pack.Older(ctx, history{tx}, f, upTo, after, limit)
		return err
	})
	var corrupt *sqlstore.CorruptError
	if err != nil && (len(rows) == 0 || !errors.As(err, &corrupt)) { // the rows before it come first
		return nil, fmt.Errorf("reading history: %w", err)
	}
	return rows, nil
}
