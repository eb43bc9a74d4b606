package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// Relaxed commits have synchronous_commit=off: PostgreSQL writes its log in one order, so
// whatever waits for the disk later brings them along, by whichever server it is written.
//
// A crash of PostgreSQL may lose them, while clients have seen their revisions. So they are
// given revisions alone that were set aside before, durably; and where PostgreSQL has crashed, which the
// row of kv_alive shows, whoever commits next goes on behind those.

// relax says whether a batch may be sent as relaxed, and sees to it that revisions are set aside.
func (d *Driver) relax(ctx context.Context, batch []sqlstore.Txn) bool {
	if !d.relaxed.May(batch) {
		return false
	}
	if d.head.Load()+sqlstore.RelaxedReserve/2 < d.reserved {
		return true
	}
	var reserved int64
	_, err := d.pool.Exec(ctx, qFence, int64(sqlstore.RelaxedSchema)) // older binaries do not look at kv_alive
	if err == nil {
		err = d.pool.QueryRow(ctx, qReserve, int64(sqlstore.RelaxedReserve)).Scan(&reserved)
	}
	if err != nil {
		d.cfg.Log.Debug("cannot set revisions aside for relaxed commits", "error", err)
		return false
	}
	d.reserved = reserved
	return true
}

// flush waits until the disk has all that was committed before it.
func (d *Driver) flush() error {
	ctx, cancel := d.limit(context.Background(), d.boundsTime())
	defer cancel()
	_, err := d.pool.Exec(ctx, qFlush)
	if err != nil {
		return fmt.Errorf("flushing relaxed commits: %w", d.translate(ctx, err))
	}
	return nil
}

// RelaxedStats implements sqlstore.Relaxing.
func (d *Driver) RelaxedStats() sqlstore.RelaxedStats { return d.relaxed.Stats() }

// revive is called where kv_alive may be empty. If it is, revisions that may have been lost
// are skipped: revision and floor of the log rise above them, so that clients which have seen one are told
// to list again. Snapshots of the past stay, as far as they are kept.
func (d *Driver) revive(ctx context.Context) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		var head, reserved int64
		var alive bool
		if err := tx.QueryRow(ctx, qLock).Scan(&head); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, qAlive).Scan(&alive, &reserved); err != nil || alive {
			return err
		}
		if reserved > head {
			if err := skip(ctx, tx, head, reserved); err != nil {
				return fmt.Errorf("skipping revisions that may have been lost: %w", err)
			}
			d.cfg.Log.Warn("the database has crashed, and commits that did not wait for its disk may be lost; revisions are left out, and clients list again", "from", head, "to", reserved)
		}
		_, err := tx.Exec(ctx, qRevive)
		return err
	})
}

func skip(ctx context.Context, tx pgx.Tx, head, to int64) error {
	b, f, err := floors(ctx, tx)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(qSetRevision, to)
	batch.Queue(qRaiseFloor, to)
	if f.Past != nil {
		seconds, revisions, err := readSeconds(ctx, tx, b.Floor, head)
		if err != nil {
			return err
		}
		batch.Queue(qMark, seconds, revisions)
		batch.Queue(qSetFloors, sqlstore.Floors{Log: to, Past: f.Past}.Text())
	}
	return tx.SendBatch(ctx, batch).Close()
}
