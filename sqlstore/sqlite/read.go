package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// reader lends a reading connection to fn.
func (d *Driver) reader(ctx context.Context, fn func(*conn) error) error {
	var c *conn
	select {
	case c = <-d.readers:
	default:
		select {
		case c = <-d.readers:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.closing:
			return sqlstore.ErrClosed
		}
	}
	defer func() { d.readers <- c }()
	select {
	case <-d.closing:
		return sqlstore.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(c)
}

// snapshot lends a reading connection inside a transaction, with the bounds it sees.
func (d *Driver) snapshot(ctx context.Context, fn func(*conn, sqlstore.Bounds) error) error {
	return d.reader(ctx, func(c *conn) (err error) {
		if err := c.exec(qBeginRO); err != nil {
			return err
		}
		defer func() {
			if e := c.exec(qRollback); e != nil && !isIdle(e) && err == nil {
				err = e
			}
		}()
		b, err := bounds(c)
		if err != nil {
			return err
		}
		return fn(c, b)
	})
}

func bounds(c *conn) (sqlstore.Bounds, error) {
	var v [2]driver.Value
	if _, err := c.one(v[:], qBounds); err != nil {
		return sqlstore.Bounds{}, err
	}
	floor, ok1 := v[0].(int64)
	head, ok2 := v[1].(int64)
	if !ok1 || !ok2 {
		return sqlstore.Bounds{}, &sqlstore.CorruptError{Reason: "kv_meta lacks floor or revision"}
	}
	return sqlstore.Bounds{Floor: floor, Head: head}, nil
}

// Bounds implements sqlstore.Driver.
func (d *Driver) Bounds(ctx context.Context) (b sqlstore.Bounds, err error) {
	err = d.reader(ctx, func(c *conn) error {
		b, err = bounds(c)
		return err
	})
	if err != nil {
		return sqlstore.Bounds{}, fmt.Errorf("reading bounds: %w", err)
	}
	return b, nil
}

func readRow(ctx context.Context, c *conn, query string, args ...any) (row sqlstore.Row, found bool, err error) {
	dec := decoder{c: c}
	err = c.query(ctx, func(v []driver.Value) error {
		row, err = dec.row(v)
		found = true
		return err
	}, query, args...)
	return row, found, err
}

// Read implements sqlstore.Driver.
func (d *Driver) Read(ctx context.Context, key sqlstore.Key, revision int64) (row sqlstore.Row, err error) {
	var found bool
	read := func(c *conn) error {
		row, found, err = readRow(context.Background(), c, qLive, key.Resource, key.Namespace, key.Name)
		return err
	}
	if revision == 0 {
		err = d.reader(ctx, read)
	} else {
		err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
			packed, err := check(c, b, key.Resource, revision)
			if err != nil {
				return err
			}
			if err := read(c); err != nil || found && row.Revision <= revision {
				return err
			}
			row, found, err = readRow(ctx, c, qReadEnded, revision, key.Resource, key.Namespace, key.Name)
			if err == nil && !found && packed {
				var p *pack.Pack
				if p, err = (history{c}).Around(ctx, key, revision); p != nil {
					row, found, err = p.At(revision)
				}
			}
			return err
		})
	}
	if err == nil && !found {
		err = &sqlstore.NotFoundError{Key: key}
	}
	if err != nil {
		return sqlstore.Row{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return row, nil
}

// Past implements sqlstore.Driver. A key's rows hold one after another: of those written
// below a revision, the newest alone can have ended at it or later.
func (d *Driver) Past(ctx context.Context, key sqlstore.Key, before int64, limit int) (rows []sqlstore.Row, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		f, err := floors(c, b)
		if err == nil {
			err = f.CheckBefore(before, b.Head)
		}
		if err != nil {
			return err
		}
		before := sqlstore.PastFrom(before)
		floor := f.Of(key.Resource)
		newest, found, err := readRow(ctx, c, qLive, key.Resource, key.Namespace, key.Name)
		if err == nil && (!found || newest.Revision >= before) {
			newest, found, err = readRow(ctx, c, qReadEnded, before-1, key.Resource, key.Namespace, key.Name)
			found = found && newest.Superseded > floor
		}
		if err != nil || limit <= 0 {
			return err
		}
		if found {
			rows = append(rows, newest)
		}
		dec := decoder{c: c}
		err = c.query(ctx, func(v []driver.Value) error {
			row, err := dec.row(v)
			rows = append(rows, row)
			return err
		}, qPast, before, key.Resource, key.Namespace, key.Name, floor, int64(limit-len(rows)))
		if err == nil && f.Past != nil {
			rows, err = pack.AppendPast(ctx, history{c}, rows, key, before, floor, limit)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the past of %s: %w", key, err)
	}
	return rows, nil
}

// Expired implements sqlstore.Driver.
func (d *Driver) Expired(ctx context.Context, now time.Time, limit int) (rows []sqlstore.Row, err error) {
	page := &sqlstore.ScanRequest{Limit: limit, Bytes: sqlstore.ChangesBytes}
	bytes := 0
	err = d.reader(ctx, func(c *conn) error {
		dec := decoder{c: c}
		return c.query(ctx, func(v []driver.Value) error {
			row, err := dec.row(v)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			if bytes += len(row.Value); page.Full(len(rows), bytes) {
				return errEnough
			}
			return nil
		}, qExpired, now.UnixMicro(), int64(limit))
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("reading expired rows: %w", err)
	}
	return rows, nil
}

// RevisionAt implements sqlstore.Driver by bisection: above the floor every
// revision has its row. Below it there are marks.
func (d *Driver) RevisionAt(ctx context.Context, t time.Time) (revision int64, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		low, high := b.Floor, b.Head
		for low < high {
			middle := high - (high-low)/2
			at, err := c.number(qWrittenAt, middle)
			if err != nil {
				return err
			}
			if at <= t.UnixMicro() {
				low = middle
			} else {
				high = middle - 1
			}
		}
		revision = low
		if low > b.Floor {
			return nil
		}
		f, err := floors(c, b)
		if err == nil && f.Past != nil {
			revision, err = marked(c, f, t)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("finding the revision at %s: %w", t, err)
	}
	return revision, nil
}

// Aged implements sqlstore.Driver.
func (d *Driver) Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error) {
	var found [2]int64 // a revision, and its time
	number := func(c *conn, query string, args ...any) (bool, error) {
		var v [2]driver.Value
		ok, err := c.one(v[:], query, args...)
		for i := range v {
			found[i], _ = v[i].(int64)
		}
		return ok && v[0] != nil, err
	}
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		f, err := floors(c, b)
		if err != nil {
			return err
		}
		young := b.Head + 1
		if ok, err := number(c, qYoung, b.Floor, b.Head, t.UnixMicro(), now.UnixMicro()); err != nil {
			return err
		} else if ok {
			young = found[0]
		}
		least := newest
		if ok, err := number(c, qMarkedLast, now.Unix()); err != nil {
			return err
		} else if last := time.Unix(found[0], 0); ok && last.After(least) {
			least = last
		}
		if ok, err := number(c, qOldest, b.Floor, young, t.UnixMicro(), least.UnixMicro()); err != nil || ok {
			revision, at = found[0], fromMicros(found[1])
			return err
		}
		_, err = number(c, qMarkedOld, t.Unix(), now.Unix())
		revision, at = max(found[0], f.Lowest()), newest
		return err
	})
	if err != nil {
		return 0, newest, fmt.Errorf("finding what was written by %s: %w", t, err)
	}
	return revision, at, nil
}

// marked returns the revision at a time below the floor of the log, to the second.
func marked(c *conn, f sqlstore.Floors, t time.Time) (int64, error) {
	var v [1]driver.Value
	_, err := c.one(v[:], qMarked, t.Unix())
	revision, _ := v[0].(int64)
	return max(revision, f.Lowest()), err
}

// Since implements sqlstore.Driver. The row of the floor is there unless it was a delete; then a mark may be.
func (d *Driver) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if t, ok, err = writtenAt(c, revision); ok || err != nil || revision > b.Floor {
			return err
		}
		if t, ok, err = markedSince(c, revision); ok || err != nil {
			return err
		}
		t, ok, err = writtenAt(c, b.Floor+1)
		return err
	})
	if err != nil {
		return t, false, fmt.Errorf("finding since when revision %d held: %w", revision, err)
	}
	return t, ok, nil
}

func writtenAt(c *conn, revision int64) (time.Time, bool, error) {
	var v [1]driver.Value
	_, err := c.one(v[:], qWrittenAt, revision)
	micros, ok := v[0].(int64)
	return fromMicros(micros), ok, err
}

// markedSince returns the first second by whose beginning, according to a mark, a revision had been written.
func markedSince(c *conn, revision int64) (t time.Time, ok bool, err error) {
	var v [2]driver.Value
	if _, err := c.one(v[:], qMarkSeconds); err != nil {
		return t, false, err
	}
	first, ok := v[0].(int64)
	last, _ := v[1].(int64)
	if !ok {
		return t, false, nil
	}
	second, err := sqlstore.SearchSecond(first+1, last+1, func(second int64) (bool, error) {
		r, err := c.number(qMarked, second)
		return r >= revision, err
	})
	return time.Unix(second, 0), err == nil && second <= last+1, err
}
