package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// writing runs a transaction of upkeep: while the checkpointer rests, and briefly, as writers wait.
// held is for how long they did.
func (d *Driver) writing(ctx context.Context, fn func(w *conn) error) (held time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d.trimming.Lock()
	defer d.trimming.Unlock()
	w, unlock, err := d.lockWriter()
	if err != nil {
		return 0, err
	}
	defer unlock()
	start := time.Now()
	if err = w.exec(qBegin); err != nil {
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

// markedAtOnce is how far the floor of the log rises at once, in revisions: as far as its
// rows are read for the seconds that they were written in.
const markedAtOnce = 100_000

// marksAtOnce is how many of those seconds one transaction notes, as writers wait for it.
const marksAtOnce = 1000

type mark struct{ second, revision int64 }

// Retain implements sqlstore.Driver. What the floor passes is read beside writers.
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
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.revision, b.revision) }) // clocks are set
	return marks, err
}

func retain(w *conn, before sqlstore.Bounds, to sqlstore.Floors, marks []mark) (next sqlstore.Floors, err error) {
	b, err := bounds(w)
	if err != nil {
		return next, err
	}
	if b.Floor != before.Floor {
		return next, fmt.Errorf("%w: somebody else compacts", sqlstore.ErrBusy)
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

// unit is what is done with some rows of one key in one transaction.
type unit struct {
	drop, move []sqlstore.Row
	last       *stored // the pack before them, if it is extended
	packs      []pack.Pack
}

// Pack implements sqlstore.Driver. Packs are made beside writers; the transaction fails if
// the rows are not as they were read.
func (d *Driver) Pack(ctx context.Context, from sqlstore.Cursor, limit int) (done sqlstore.Packed, err error) {
	var units []unit
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		units, err = gather(ctx, c, b, from, limit, &done)
		return err
	})
	if err == nil && len(units) > 0 {
		done.Held, err = d.writing(ctx, func(w *conn) error {
			for i := range units {
				if err := units[i].write(w); err != nil {
					return err
				}
			}
			return nil
		})
		d.trimmed.Store(int64(time.Since(d.began)))
		d.spare.Store(true)
	}
	if err != nil {
		return sqlstore.Packed{Next: from}, fmt.Errorf("packing: %w", err)
	}
	return done, nil
}

func gather(ctx context.Context, c *conn, b sqlstore.Bounds, from sqlstore.Cursor, limit int, done *sqlstore.Packed) (units []unit, err error) {
	f, err := floors(c, b)
	if err != nil {
		return nil, err
	}
	done.Next = from
	for left := int64(limit) * sqlstore.PackedFor; left > 0 && ctx.Err() == nil; {
		found, more, err := endedRows(ctx, c, done.Next.Key, done.Next.Revision, b.Floor, min(pack.MaxRows, limit))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			u, cost, err := newUnit(ctx, c, found, f.Of(done.Next.Key.Resource), done)
			var damaged *sqlstore.CorruptError
			if more = more && err == nil; err != nil && !errors.As(err, &damaged) {
				return nil, err
			} // else the rows of this key stay where they are, as long as a damaged pack before them does
			units, left = append(units, u), left-cost
			if more || err == nil && left <= 0 { // the next of this key are seen after these are gone
				done.Next.Revision = found[len(found)-1].Superseded
				return units, nil
			}
		}
		key, any, err := nextKey(c, qNextEnded, done.Next.Key.Resource, done.Next.Key.Namespace, done.Next.Key.Name)
		if err != nil || !any {
			done.Done = true
			return units, err
		}
		done.Next = sqlstore.Cursor{Key: key}
	}
	return units, ctx.Err()
}

// newUnit also tells what it costs, as PackedFor counts. Errors: CorruptError where a damaged pack is in
// the way; the unit then has what can be done.
func newUnit(ctx context.Context, c *conn, rows []sqlstore.Row, floor int64, done *sqlstore.Packed) (u unit, cost int64, err error) {
	kept := 0
	for kept < len(rows) && rows[kept].Superseded <= floor {
		kept++
	}
	u.drop, u.move = rows[:kept], rows[kept:]
	done.Deleted += len(u.drop)
	for i := range rows {
		cost += sqlstore.PackedFor + int64(len(rows[i].Value))
	}
	if len(u.move) == 0 {
		return u, cost, nil
	}
	k := rows[0].Key
	for i := range u.move {
		if row := &u.move[i]; row.Damaged != nil { // a pack would vouch for it
			u.move = nil
			return u, cost, &sqlstore.CorruptError{Key: k, Revision: row.Revision, Reason: row.Damaged.Error()}
		}
	}
	packs, err := readPacks(ctx, c, qPackedBelow, u.move[0].Revision+1, k.Resource, k.Namespace, k.Name, floor, int64(1))
	if err != nil {
		return u, cost, err
	}
	var last *pack.Pack
	if len(packs) > 0 {
		u.last, last = &packs[0], &packs[0].Pack
	}
	var extends bool
	if u.packs, extends, err = pack.Fold(last, u.move); err != nil {
		u.move = nil
		return u, cost, err
	}
	for i := range u.packs {
		done.Stored += int64(len(u.packs[i].Text))
		cost += int64(len(u.packs[i].Text))
	}
	if extends {
		done.Stored -= int64(len(last.Text))
	} else {
		u.last = nil
	}
	done.Rows += len(u.move)
	for i := range u.move {
		done.Bytes += int64(len(u.move[i].Value))
	}
	return u, cost, nil
}

// write puts packs in the place of rows and of the pack before them, all of which must be there still, and not restated.
func (u *unit) write(w *conn) error {
	for _, rows := range [][]sqlstore.Row{u.drop, u.move} {
		for i := range rows {
			value := rows[i].Value
			if value == nil {
				value = []byte{} // and not NULL
			}
			if err := one(w.execCount(qUnkeep, rows[i].Revision, rows[i].Superseded, value)); err != nil {
				return err
			}
		}
	}
	for i := range u.packs {
		p := &u.packs[i]
		var err error
		if i == 0 && u.last != nil {
			err = one(w.execCount(qExtendPack, p.Until, number(p.Deleted), int64(p.Count), string(p.Text), u.last.row, u.last.Until, u.last.Text))
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
		err = fmt.Errorf("%w: somebody else compacts", sqlstore.ErrBusy)
	}
	return err
}

// Forget implements sqlstore.Driver.
func (d *Driver) Forget(ctx context.Context, limit int) (deleted int, err error) {
	_, err = d.writing(ctx, func(w *conn) error {
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
		for resource := ""; deleted < limit; {
			var v [1]driver.Value
			more, err := w.one(v[:], qNextForget, resource)
			if err != nil || !more {
				return err
			}
			resource = text(v[0])
			n, err := w.execCount(qForget, resource, f.Of(resource), int64(limit-deleted))
			if err != nil {
				return err
			}
			deleted += int(n)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("deleting packs: %w", err)
	}
	return deleted, nil
}
