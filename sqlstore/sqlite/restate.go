package sqlite

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// ReplaceEnded implements sqlstore.History. It makes packs without blocking writers; the transaction fails if
// they have changed since they were read.
func (d *Driver) ReplaceEnded(ctx context.Context, rows []sqlstore.Row) (done int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	var swaps []pack.Replacement
	var loose []sqlstore.Row
	k := rows[0].Key
	err = d.snapshot(ctx, func(c *conn, _ sqlstore.Bounds) error {
		swaps, loose, err = pack.ReplaceRows(rows, func(above int64) (*pack.Pack, error) { return history{c}.Around(ctx, k, above) })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("writing history of %s anew: %w", k, err)
	}
	done = len(rows) - len(loose)
	ops := make([]sqlstore.Op, len(loose))
	for i := range loose {
		ops[i] = sqlstore.Op{Key: k, Value: loose[i].Value}
	}
	if err := d.stageAll(ctx, ops, func(*conn, *sqlstore.Op) (bool, error) { return true, nil }); err != nil {
		return 0, fmt.Errorf("writing history of %s anew: %w", k, err)
	}
	defer func() {
		d.Unstage(ops, false) // what a row has by now stays
		d.staging.wakeUp()
	}()
	var sums sqlstore.Checksummer
	_, err = d.writing(ctx, func(w *conn) error {
		for i := range loose {
			n, err := restate(w, &loose[i], ops[i].Staged, &sums)
			if err != nil {
				return err
			}
			done += int(n)
		}
		for i := range swaps {
			p := &swaps[i].Old
			if err := one(w.execCount(qDropPack, p.Until, k.Resource, k.Namespace, k.Name, p.Text)); err != nil {
				return err
			}
			for j := range swaps[i].New {
				if err := insertPack(w, &swaps[i].New[j]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("writing history of %s anew: %w", k, err)
	}
	return done, nil
}

// restate replaces the value of an ended row, and returns how many rows it found.
func restate(w *conn, row *sqlstore.Row, staged int64, sums *sqlstore.Checksummer) (int64, error) {
	if ended, err := w.number(qHasEnded, row.Revision); err != nil || ended == 0 {
		return 0, err
	}
	if err := dropLarge(w, row.Revision); err != nil {
		return 0, err
	}
	var value any = row.Value
	if isLarge(row.Value) {
		id, err := holdLarge(w, staged, row.Revision, row.WrittenAt.UnixMicro(), row.Value)
		if err != nil {
			return 0, err
		}
		value = id
	}
	return w.execCount(qRestate, value, sums.Row(row), row.Revision)
}
