package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// writing runs a transaction of upkeep: while the checkpointer rests, and briefly, as writers wait.
// held is for how long they did.
func (d *Driver) writing(ctx context.Context, fn func(w *conn) error) (held time.Duration, err error) {
	return d.writingFor(ctx, false, fn)
}

// writingFor is writing. The commit of a relaxed transaction does not wait for the disk.
func (d *Driver) writingFor(ctx context.Context, relaxed bool, fn func(w *conn) error) (held time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d.trimming.Lock()
	defer d.trimming.Unlock()
	w, unlock, err := d.lockWriterFor(relaxed)
	if err != nil {
		return 0, err
	}
	defer unlock()
	start := time.Now()
	if err = d.begin(ctx, w); err != nil {
		return 0, err
	}
	if err = fn(w); err == nil {
		err = d.end(w)
	}
	if err != nil {
		if e := w.exec(qRollback); e != nil && !isIdle(e) {
			err = errors.Join(err, e)
		}
		return 0, err
	}
	d.wroteLog()
	return time.Since(start), nil
}

// begin takes the file's lock for writing. SQLite asks for it at intervals, and a server with many writes leaves it free for
// moments only, so that it may take a command many times BusyTimeout to meet one.
func (d *Driver) begin(ctx context.Context, w *conn) error {
	for began := time.Now(); ; {
		err := w.exec(qBegin)
		if !errors.Is(err, sqlstore.ErrBusy) || ctx.Err() != nil || time.Since(began) >= d.cfg.Patience {
			return err
		}
	}
}

// markedAtOnce bounds by how many revisions the floor of the log rises at once: the seconds in
// which their rows were written are read.
const markedAtOnce = 100_000

// marksAtOnce is the number of those seconds that one transaction marks, because writers wait for it.
const marksAtOnce = 1000

type mark struct{ second, revision int64 }

// Retain implements sqlstore.Driver. It reads the rows below the floor without blocking writers.
func (d *Driver) Retain(ctx context.Context, to sqlstore.Floors) (next sqlstore.Floors, err error) {
	var marks []mark
	var before sqlstore.Bounds
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		before, to.Log = b, min(to.Log, b.Floor+markedAtOnce, b.Head)
		if marks, err = readMarks(ctx, c, b.Floor, to.Log); len(marks) > marksAtOnce {
			marks = marks[:marksAtOnce]
			to.Log = marks[marksAtOnce-1].revision
		}
		return err
	})
	if err == nil {
		_, err = d.writing(ctx, func(w *conn) error {
			next, err = retain(w, before, to, marks)
			return err
		})
	}
	if err != nil {
		return next, fmt.Errorf("raising the floors: %w", err)
	}
	return next, nil
}

// readMarks reads the last revision of each second in a range of revisions, in their order.
func readMarks(ctx context.Context, c *conn, after, upTo int64) (marks []mark, err error) {
	err = c.query(ctx, func(v []driver.Value) error {
		second, _ := v[0].(int64)
		revision, _ := v[1].(int64)
		marks = append(marks, mark{second, revision})
		return nil
	}, qSeconds, after, upTo)
	sort.Slice(marks, func(i, j int) bool { return marks[i].revision < marks[j].revision }) // clocks are set
	return marks, err
}

func retain(w *conn, before sqlstore.Bounds, to sqlstore.Floors, marks []mark) (next sqlstore.Floors, err error) {
	b, err := bounds(w)
	if err != nil {
		return next, err
	}
	if b.Floor != before.Floor {
		return next, fmt.Errorf("%w: another process compacts", sqlstore.ErrBusy)
	}
	f, err := floors(w, b)
	if err != nil {
		return next, err
	}
	for _, m := range marks {
		if err := w.exec(qMark, m.second, m.revision); err != nil {
			return next, err
		}
	}
	next = f.Raised(to, b.Head)
	if err := w.exec(qRaiseFloor, next.Log); err != nil {
		return next, err
	}
	if err := w.exec(qCompatible, int64(sqlstore.UnpackedSchema), int64(sqlstore.PackedSchema)); err != nil {
		return next, err
	}
	return next, w.exec(qSetFloors, next.Text())
}

// Pack implements sqlstore.Driver. It makes packs without blocking writers; the transaction fails if
// the rows have changed since they were read.
func (d *Driver) Pack(ctx context.Context, from sqlstore.Cursor, limit int) (done sqlstore.Packed, err error) {
	var units []pack.Unit
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		units, err = gather(ctx, c, b, from, limit, &done)
		return err
	})
	if err == nil && len(units) > 0 {
		done.WritersBlocked, err = d.writing(ctx, func(w *conn) error {
			for i := range units {
				if err := writeUnit(w, &units[i]); err != nil {
					return err
				}
			}
			return nil
		})
		d.trimmed.Store(int64(time.Since(d.began)))
		d.spare.Store(true)
		d.staging.wakeUp()
	}
	if err != nil {
		return sqlstore.Packed{Next: from}, fmt.Errorf("packing: %w", err)
	}
	return done, nil
}

func gather(ctx context.Context, c *conn, b sqlstore.Bounds, from sqlstore.Cursor, limit int, done *sqlstore.Packed) ([]pack.Unit, error) {
	f, err := floors(c, b)
	if err != nil {
		return nil, err
	}
	return pack.Gather(ctx, packing{history{c}}, f, b.Floor, from, limit, min(pack.MaxRows, limit), done)
}

// writeUnit replaces rows, and the pack before them, by packs. All of them must be as they were read.
func writeUnit(w *conn, u *pack.Unit) error {
	for _, rows := range [][]sqlstore.Row{u.Drop, u.Move} {
		for i := range rows {
			if err := unkeep(w, &rows[i]); err != nil {
				return err
			}
		}
	}
	for i := range u.Packs {
		p := &u.Packs[i]
		var err error
		if i == 0 && u.Last != nil {
			err = one(w.execCount(qExtendPack, p.Until, number(p.Deleted), int64(p.Count), string(p.Text), u.Last.Place, u.Last.Until, u.Last.Text))
		} else {
			err = insertPack(w, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func insertPack(w *conn, p *pack.Pack) error {
	return w.exec(qInsertPack, p.Key.Resource, p.Key.Namespace, p.Key.Name, p.First, p.Until, p.Created, number(p.Deleted), int64(p.Count), p.Written.UnixMicro(), string(p.Text))
}

func number(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// one wants a statement to have found its row.
func one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: another process compacts", sqlstore.ErrBusy)
	}
	return err
}

// Forget implements sqlstore.Driver. Packs with more than trimBytes take several transactions, with rests like those of the sweeper. It
// returns once the large values of deleted rows are deleted, too: a compaction ends with it.
func (d *Driver) Forget(ctx context.Context, limit int) (deleted int, err error) {
	if err := d.sweep(ctx, time.Time{}); err != nil {
		return 0, fmt.Errorf("deleting large values: %w", err)
	}
	for more := true; more && err == nil; {
		deleted, more, err = d.forgetSome(ctx, limit, deleted)
	}
	if err != nil {
		return 0, fmt.Errorf("deleting packs: %w", err)
	}
	return deleted, nil
}

// forgetSome is one transaction of Forget, of whose packs some are deleted.
func (d *Driver) forgetSome(ctx context.Context, limit, deleted int) (_ int, more bool, err error) {
	before := deleted
	held, err := d.writing(ctx, func(w *conn) error {
		b, err := bounds(w)
		if err != nil {
			return err
		}
		f, err := floors(w, b)
		if err != nil {
			return err
		}
		if err := w.exec(qForgetMarks, f.Lowest(), int64(limit)); err != nil {
			return err
		}
		bytes := int64(0)
		for resource := ""; deleted < limit && !more; {
			var v [1]driver.Value
			found, err := w.one(v[:], qNextForget, resource)
			if err != nil || !found {
				return err
			}
			resource = text(v[0])
			some := 0
			err = w.query(context.Background(), func(v []driver.Value) error {
				size, _ := v[0].(int64)
				if some++; bytes+size > trimBytes {
					more = true
					return errEnough
				}
				bytes += size
				return nil
			}, qForgettable, resource, f.Of(resource), int64(limit-deleted))
			if err != nil && !errors.Is(err, errEnough) {
				return err
			}
			n, err := w.execCount(qForget, resource, f.Of(resource), int64(some))
			if err != nil {
				return err
			}
			deleted += int(n)
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	if deleted > before {
		d.trimmed.Store(int64(time.Since(d.began)))
		d.spare.Store(true)
	}
	if !more || deleted >= limit {
		return deleted, false, nil
	}
	return deleted, true, d.rest(ctx, held)
}
