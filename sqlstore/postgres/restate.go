package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// ReplaceEnded implements sqlstore.History. It makes packs without blocking writers; the transaction fails if
// they have changed since they were read.
func (d *Driver) ReplaceEnded(ctx context.Context, rows []sqlstore.Row) (done int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	ctx, ended := d.call(ctx, d.cfg.StatementTimeout)
	defer ended(&err)
	var swaps []pack.Replacement
	var loose []sqlstore.Row
	k := rows[0].Key
	err = d.reading(ctx, func(tx pgx.Tx, _ sqlstore.Bounds, _ sqlstore.Floors) error {
		swaps, loose, err = pack.ReplaceRows(rows, func(above int64) (*pack.Pack, error) { return history{tx}.Around(ctx, k, above) })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("writing history of %s anew: %w", k, err)
	}
	var u units
	for i := range swaps {
		u.last, u.packs = append(u.last, swaps[i].Old), append(u.packs, swaps[i].New...)
	}
	revisions, values := make([]int64, len(loose)), make([][]byte, len(loose))
	for i := range loose {
		revisions[i], values[i] = loose[i].Revision, loose[i].Value
	}
	done = len(rows) - len(loose)
	err = d.change(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(qRestate, revisions, values).Exec(func(tag pgconn.CommandTag) error {
			done += int(tag.RowsAffected())
			return nil
		})
		u.queuePacks(batch)
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("writing history of %s anew: %w", k, err)
	}
	return done, nil
}
