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
// A crash of PostgreSQL may lose them, while clients have seen their revisions. So they get only
// revisions that were durably reserved before; and if PostgreSQL has crashed, which the row of kv_alive
// shows, the next server to commit continues after those: see examine.

// relax reports whether a batch may be sent as relaxed, and reserves revisions for it.
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
		d.cfg.Log.Debug("cannot reserve revisions for relaxed commits", "error", err)
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

// RelaxedStats implements sqlstore.Writer.
func (d *Driver) RelaxedStats() sqlstore.RelaxedStats { return d.relaxed.Stats() }

// skip raises revision and floor of the log to a revision.
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
		batch.Queue(qSetFloors, f.Skip(head, to).Text())
	}
	return tx.SendBatch(ctx, batch).Close()
}
