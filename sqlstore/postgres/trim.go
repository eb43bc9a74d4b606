package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// Trim implements sqlstore.Driver. The floor and the deletion are one transaction, which does not take the
// writers' lock: no other transaction touches ended rows. It continues where the last call ended, because the
// index contains deleted rows until it is vacuumed.
func (d *Driver) Trim(ctx context.Context, to int64, limit int) (deleted int, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	var last int64
	err = d.change(ctx, func(tx pgx.Tx) error {
		b, f, err := lockedFloors(ctx, tx)
		if err != nil {
			return err
		}
		// Rows below a floor that packs go beyond wait to be packed; they go once the floor rises, which ends those.
		if to = min(to, b.Head); to <= b.Floor && f.Past != nil {
			return nil
		}
		if to > b.Floor {
			if _, err := tx.Exec(ctx, qRaiseFloor, to); err != nil {
				return err
			}
			// The row may go with those that it ended: the mark says since when it held.
			if _, err := tx.Exec(ctx, qMarkRow, to); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, qForgetMarks, to, forgottenAtOnce); err != nil {
				return err
			}
			if f.Past != nil { // all packs are below the floor now
				if _, err := tx.Exec(ctx, qCompatible, sqlstore.PackedSchema, sqlstore.UnpackedSchema); err != nil {
					return err
				}
			}
			b.Floor = to
		}
		if limit <= 0 {
			return nil
		}
		return tx.QueryRow(ctx, qTrim, b.Floor, limit, d.trimmed.Load()).Scan(&deleted, &last)
	})
	if err != nil {
		d.trimmed.Store(0)
		return 0, fmt.Errorf("trimming to %d: %w", to, err)
	}
	if deleted < limit {
		last = 0 // the next round starts from the beginning: a failover may have restored rows
	}
	d.trimmed.Store(last)
	return deleted, nil
}

// ConcurrentTrim implements sqlstore.Driver.
func (d *Driver) ConcurrentTrim() bool { return true }

// ChecksRows implements sqlstore.Driver: PostgreSQL has checksums of pages; the driver logs a warning if they are off.
func (d *Driver) ChecksRows() bool { return false }

// Healthy implements sqlstore.Writer: the files are the concern of the PostgreSQL server.
func (*Driver) Healthy() error { return nil }

// CheckRows implements sqlstore.Driver.
func (*Driver) CheckRows(context.Context, bool, func([]sqlstore.Row) error) error { return nil }

// Stats implements sqlstore.Driver.
func (d *Driver) Stats(ctx context.Context) (s sqlstore.Stats, err error) {
	s.Driver = "postgres"
	if s.SchemaVersion, _, err = d.schema(ctx); err != nil {
		return s, fmt.Errorf("reading statistics: %w", err)
	}
	txOptions := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, d.pool, txOptions, func(tx pgx.Tx) error {
		// Counting reads everything: that is no time to forbid sequential reads.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = 0", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, qBounds).Scan(&s.Bounds.Floor, &s.Bounds.Head); err != nil {
			return err
		}
		var oldest *time.Time
		if err := tx.QueryRow(ctx, qSizes).Scan(&s.LiveRows, &s.HistoryRows, &oldest, &s.Bytes, &s.ServerVersion, &s.ClusterID); err != nil {
			return err
		}
		if oldest != nil {
			s.OldestWrittenAt = oldest.UTC()
		}
		var packed *time.Time
		if err := tx.QueryRow(ctx, qPacks).Scan(&s.Packs, &s.PackedRows, &packed); err != nil {
			return err
		}
		if packed != nil && (oldest == nil || packed.Before(*oldest)) {
			s.OldestWrittenAt = packed.UTC()
		}
		rows, err := tx.Query(ctx, qCounts)
		if err != nil {
			return err
		}
		s.Resources, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sqlstore.ResourceStats, err error) {
			err = row.Scan(&r.Resource, &r.Objects, &r.Bytes)
			return r, err
		})
		return err
	})
	if err != nil {
		return s, fmt.Errorf("reading statistics: %w", d.translate(ctx, err))
	}
	return s, nil
}
