package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// The sweeper deletes values that no row has: those of rows that were compacted, of writes that failed, and of processes that
// died. SQLite does not write the pages that become free, so one transaction deletes several pieces.
const (
	sweepPieces = 8                // that one transaction deletes
	sweepRest   = 3                // the pause after each, relative to its duration
	sweepEvery  = time.Minute      // how often it looks for work without being woken
	unheldFor   = 10 * time.Minute // after which the sweeper abandons a value that no row has; if its writer still runs, the commit writes it again
)

// sweeps runs the sweeper until the driver closes. Processes that have ended left the values that no row had before a time.
func (d *Driver) sweeps(ended time.Time) {
	defer d.loops.Done()
	defer d.staging.close()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		d.sweepStaged()
		if err := d.sweep(context.Background(), ended); err == nil {
			ended = time.Time{}
		}
		select {
		case <-d.closing:
			return
		case <-d.staging.wake:
		case <-tick.C:
		}
	}
}

// sweepStaged deletes abandoned values, for whose room writers may wait. sweep finds by age what it fails to delete.
func (d *Driver) sweepStaged() {
	for _, a := range d.staging.takeAbandoned() {
		_ = d.sweepAll(a)
		d.staging.room.Release(a.room)
	}
}

// sweepAll deletes staged values that no row has.
func (d *Driver) sweepAll(a abandoned) error {
	_, err := d.writing(context.Background(), func(w *conn) error {
		for _, id := range a.ids {
			if err := w.exec(qAbandon, id); err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range a.ids {
		for more := true; more && err == nil; {
			more, err = d.sweepSome(context.Background(), id)
		}
	}
	return err
}

// sweep deletes all values that no row has any more, or that no row had before a time or for unheldFor. Those of the future were begun
// while the clock was ahead.
func (d *Driver) sweep(ctx context.Context, ended time.Time) error {
	if err := d.staging.sweeping.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.staging.sweeping.Release(1)
	now := time.Now()
	from, to := now.Add(-unheldFor), now.Add(unheldFor)
	if ended.After(from) {
		from = ended
	}
	var found int64
	err := d.reader(ctx, func(c *conn) (err error) {
		found, err = c.number(qUnswept, from.UnixMicro(), to.UnixMicro())
		return err
	})
	if err != nil || found == 0 {
		return err
	}
	if _, err := d.writing(ctx, func(w *conn) error { return w.exec(qAbandonOld, from.UnixMicro(), to.UnixMicro()) }); err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = d.sweepSome(ctx, 0); err == nil {
			d.sweepStaged()
		}
	}
	return err
}

// sweepSome deletes pieces of a value that no row has any more, of any such value for 0, and pauses. more is false if there is none.
func (d *Driver) sweepSome(ctx context.Context, id int64) (more bool, err error) {
	var n int64
	held, err := d.writing(ctx, func(w *conn) error {
		if id == 0 {
			var v [1]driver.Value
			found, err := w.one(v[:], qDropped)
			if id, _ = v[0].(int64); err != nil || !found {
				return err
			}
			more = true
		}
		var err error
		n, err = w.execCount(qDeletePieces, id, int64(sweepPieces))
		if more = more || n == sweepPieces; err != nil || n == sweepPieces {
			return err
		}
		if err := w.exec(qDeleteLarge, id); err != nil {
			return err
		}
		return unfence(w)
	})
	if err != nil {
		return false, err
	}
	if n > 0 {
		d.trimmed.Store(int64(time.Since(d.began)))
		d.spare.Store(true)
	}
	return more, d.rest(ctx, held)
}

// rest pauses after a transaction for which writers may have waited.
func (d *Driver) rest(ctx context.Context, held time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return sqlstore.ErrClosed
	case <-time.After(sweepRest * held):
		return nil
	}
}
