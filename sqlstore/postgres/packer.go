package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// markedAtOnce bounds by how many revisions the floor of the log rises at once: the seconds in
// which their rows were written are read.
const markedAtOnce = 100_000

// forgottenAtOnce is the number of marks that are deleted at once when the floor rises.
const forgottenAtOnce = 1000

// Retain implements sqlstore.Driver. It waits for no writer, but for another that compacts.
func (d *Driver) Retain(ctx context.Context, to sqlstore.Floors) (next sqlstore.Floors, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.change(ctx, func(tx pgx.Tx) error {
		b, f, err := lockedFloors(ctx, tx)
		if err != nil {
			return err
		}
		to.Log = min(to.Log, b.Floor+markedAtOnce, b.Head)
		seconds, revisions, err := readSeconds(ctx, tx, b.Floor, to.Log)
		if err != nil {
			return err
		}
		next = f.Raised(to, b.Head)
		batch := &pgx.Batch{}
		batch.Queue(qMark, seconds, revisions)
		batch.Queue(qRaiseFloor, next.Log)
		batch.Queue(qCompatible, sqlstore.UnpackedSchema, sqlstore.PackedSchema)
		batch.Queue(qSetFloors, next.Text())
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return next, fmt.Errorf("raising the floors: %w", err)
	}
	return next, nil
}

func readSeconds(ctx context.Context, tx pgx.Tx, from, to int64) (seconds, revisions []int64, err error) {
	rows, err := tx.Query(ctx, qSeconds, from, to)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var second, revision int64
		if err := rows.Scan(&second, &revision); err != nil {
			return nil, nil, err
		}
		seconds, revisions = append(seconds, second), append(revisions, revision)
	}
	return seconds, revisions, rows.Err()
}

// units are the changes to rows of some keys in one transaction.
type units struct {
	gone  []int64     // revisions of rows that are not in kv afterwards,
	were  [][]byte    // and their values
	last  []pack.Pack // that are replaced
	packs []pack.Pack
}

// Pack implements sqlstore.Driver. It makes packs without blocking writers; the transaction fails if
// the rows have changed since they were read.
func (d *Driver) Pack(ctx context.Context, from sqlstore.Cursor, limit int) (packed sqlstore.Packed, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	var u units
	err = d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) error {
		return u.gather(ctx, tx, b, f, from, limit, &packed)
	})
	if err == nil && len(u.gone) > 0 {
		err = d.change(ctx, func(tx pgx.Tx) error { return u.write(ctx, tx) })
	}
	if err != nil {
		return sqlstore.Packed{Next: from}, fmt.Errorf("packing: %w", err)
	}
	return packed, nil
}

func (u *units) gather(ctx context.Context, tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors, from sqlstore.Cursor, limit int, done *sqlstore.Packed) error {
	found, err := pack.Gather(ctx, history{tx}, f, b.Floor, from, limit, pack.MaxRows, done)
	for i := range found {
		one := &found[i]
		for _, row := range slices.Concat(one.Drop, one.Move) {
			u.gone, u.were = append(u.gone, row.Revision), append(u.were, append([]byte{}, row.Value...)) // not NULL
		}
		if one.Last != nil {
			u.last = append(u.last, *one.Last)
		}
		u.packs = append(u.packs, one.Packs...)
	}
	return err
}

// write puts packs in the place of rows, all of which must be there still, and not restated.
func (u *units) write(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	batch.Queue(qUnkeep, u.gone, u.were).Exec(affects(len(u.gone)))
	u.queuePacks(batch)
	return tx.SendBatch(ctx, batch).Close()
}

// affects wants a statement to have found that many rows.
func affects(n int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return fmt.Errorf("%w: another process compacts", sqlstore.ErrBusy)
		}
		return nil
	}
}

// queuePacks puts packs in the place of others, all of which must be there still, and not restated.
func (u *units) queuePacks(batch *pgx.Batch) {
	for i := range u.last {
		p := &u.last[i]
		batch.Queue(qDropPack, p.Key.Resource, p.Key.Namespace, p.Key.Name, p.Until, p.Text).Exec(affects(1))
	}
	n := len(u.packs)
	if n == 0 {
		return
	}
	resource, namespace, name := make([]string, n), make([]string, n), make([]string, n)
	first, until, created := make([]int64, n), make([]int64, n), make([]int64, n)
	deleted, count, written, text := make([]bool, n), make([]int32, n), make([]time.Time, n), make([][]byte, n)
	for i := range u.packs {
		p := &u.packs[i]
		resource[i], namespace[i], name[i] = p.Key.Resource, p.Key.Namespace, p.Key.Name
		first[i], until[i], created[i] = p.First, p.Until, p.Created
		deleted[i], count[i], written[i], text[i] = p.Deleted, int32(p.Count), p.Written, p.Text
	}
	batch.Queue(qInsertPacks, resource, namespace, name, first, until, created, deleted, count, written, text)
}

// Forget implements sqlstore.Driver.
func (d *Driver) Forget(ctx context.Context, limit int) (deleted int, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.change(ctx, func(tx pgx.Tx) error {
		_, f, err := floors(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, qForgetMarks, f.Lowest(), limit); err != nil {
			return err
		}
		for resource := ""; deleted < limit; {
			err := tx.QueryRow(ctx, qNextForget, resource).Scan(&resource)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, qForget, resource, f.Of(resource), limit-deleted)
			if err != nil {
				return err
			}
			deleted += int(tag.RowsAffected())
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("deleting packs: %w", err)
	}
	return deleted, nil
}
