package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// Floors implements sqlstore.Driver.
func (d *Driver) Floors(ctx context.Context) (f sqlstore.Floors, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		f, err = floors(c, b)
		return err
	})
	if err != nil {
		return f, fmt.Errorf("reading floors: %w", err)
	}
	return f, nil
}

func floors(c *conn, b sqlstore.Bounds) (sqlstore.Floors, error) {
	var v [1]driver.Value
	if _, err := c.one(v[:], qFloors); err != nil {
		return sqlstore.Floors{}, err
	}
	return sqlstore.ParseFloors(text(v[0]), b.Floor)
}

// check returns an error if a snapshot cannot be read, and reports whether it reaches into packs.
func check(c *conn, b sqlstore.Bounds, resource string, revision int64) (packed bool, err error) {
	if revision >= b.Floor {
		return false, b.Check(revision)
	}
	f, err := floors(c, b)
	if err != nil {
		return false, err
	}
	return true, f.Check(resource, revision, b.Head)
}

func scanPack(v []driver.Value) (p pack.Pack) {
	p.Key = sqlstore.Key{Resource: text(v[0]), Namespace: text(v[1]), Name: text(v[2])}
	p.First, _ = v[3].(int64)
	p.Until, _ = v[4].(int64)
	p.Created, _ = v[5].(int64)
	deleted, _ := v[6].(int64)
	p.Deleted = deleted != 0
	count, _ := v[7].(int64)
	p.Count = int(count)
	written, _ := v[8].(int64)
	p.Written = fromMicros(written)
	p.Text = blob(v[9])
	p.Place, _ = v[10].(int64)
	return p
}

func readPacks(ctx context.Context, c *conn, query string, args ...any) (packs []pack.Pack, err error) {
	err = c.query(ctx, func(v []driver.Value) error {
		packs = append(packs, scanPack(v))
		return nil
	}, query, args...)
	return packs, err
}

// history implements pack.Snapshot in a transaction.
type history struct{ c *conn }

func (h history) Around(ctx context.Context, key sqlstore.Key, revision int64) (*pack.Pack, error) {
	packs, err := readPacks(ctx, h.c, qPacked, revision, key.Resource, key.Namespace, key.Name)
	if err != nil || len(packs) == 0 {
		return nil, err
	}
	return &packs[0], nil
}

func (h history) Below(ctx context.Context, key sqlstore.Key, revision, floor int64, limit int) ([]pack.Pack, error) {
	return readPacks(ctx, h.c, qPackedBelow, revision, key.Resource, key.Namespace, key.Name, floor, int64(limit))
}

func (h history) NextEnded(_ context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	return nextKey(h.c, qNextEnded, after.Resource, after.Namespace, after.Name)
}

func (h history) NextPacked(_ context.Context, after sqlstore.Key) (sqlstore.Key, bool, error) {
	return nextKey(h.c, qNextPackedAll, int64(0), after.Resource, after.Namespace, after.Name, "")
}

// place locates a row of a snapshot that is not live.
type place struct {
	key      sqlstore.Key
	revision int64 // in kv, or 0
	pack     int64
}

// scanPacked finds the packs that have rows of a page, up to last if that is given.
func scanPacked(ctx context.Context, c *conn, req sqlstore.ScanRequest, last *sqlstore.Key) (found []place, err error) {
	query := shape(req, qNextPackedAll, qNextPackedResource, qNextPackedNamespace)
	var v [3]driver.Value
	for len(found) < req.Limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ok, err := c.one(v[:], query, scanArgs(req, req.Revision)[:5]...)
		if err != nil || !ok {
			return found, err
		}
		req.After = sqlstore.Key{Resource: text(v[0]), Namespace: text(v[1]), Name: text(v[2])}
		if last != nil && req.After.Compare(*last) > 0 {
			return found, nil
		}
		ok, err = c.one(v[:2], qPackedHead, req.Revision, req.After.Resource, req.After.Namespace, req.After.Name)
		if err != nil {
			return nil, err
		}
		first, _ := v[1].(int64)
		if ok && first <= req.Revision {
			row, _ := v[0].(int64)
			found = append(found, place{key: req.After, pack: row})
		}
	}
	return found, nil
}

// at reads a row from where it lies.
func (p *place) at(ctx context.Context, c *conn, revision int64) (row sqlstore.Row, err error) {
	found := false
	if p.revision != 0 {
		row, found, err = readRow(ctx, c, qRow, p.revision)
	} else {
		var packs []pack.Pack
		if packs, err = readPacks(ctx, c, qPackedRow, p.pack); err == nil && len(packs) > 0 {
			row, found, err = packs[0].At(revision)
		}
	}
	if err == nil && !found {
		err = fmt.Errorf("%s at %d vanished inside a transaction", p.key, revision)
	}
	return row, err
}

var errEnough = errors.New("enough was read")

// unitBytes bounds how much of one object is packed at once, and a row.
const unitBytes = 256 << 10

func (h history) Ended(ctx context.Context, key sqlstore.Key, written, from, upTo int64, limit int) (rows []sqlstore.Row, more bool, err error) {
	return h.ended(ctx, &decoder{c: h.c}, key, written, from, upTo, limit)
}

func (history) Stays(*sqlstore.Row) bool { return false }

// packing is history for packing, which leaves values in pieces where they are, and does not read them.
type packing struct{ history }

func (p packing) Ended(ctx context.Context, key sqlstore.Key, written, from, upTo int64, limit int) (rows []sqlstore.Row, more bool, err error) {
	return p.ended(ctx, &decoder{}, key, written, from, upTo, limit)
}

func (packing) Stays(row *sqlstore.Row) bool { return row.Value == nil }

func (h history) ended(ctx context.Context, dec *decoder, key sqlstore.Key, written, from, upTo int64, limit int) (rows []sqlstore.Row, more bool, err error) {
	size := 0
	err = h.c.query(ctx, func(v []driver.Value) error {
		row, err := dec.row(v)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if size += len(row.Value); size > unitBytes {
			return errEnough
		}
		return nil
	}, qEndedRows, from, key.Resource, key.Namespace, key.Name, upTo, int64(limit), written)
	more = len(rows) == limit
	if errors.Is(err, errEnough) {
		more, err = true, nil
	}
	return rows, more, err
}

func nextKey(c *conn, query string, args ...any) (key sqlstore.Key, found bool, err error) {
	var v [3]driver.Value
	found, err = c.one(v[:], query, args...)
	return sqlstore.Key{Resource: text(v[0]), Namespace: text(v[1]), Name: text(v[2])}, found, err
}

// Older implements sqlstore.Driver.
func (d *Driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	return d.ended(ctx, floors, upTo, after, limit)
}

// AllEnded implements sqlstore.Driver.
func (d *Driver) AllEnded(ctx context.Context, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	none := func(*conn, sqlstore.Bounds) (sqlstore.Floors, error) { return sqlstore.Floors{}, nil }
	return d.ended(ctx, none, math.MaxInt64, after, limit)
}

func (d *Driver) ended(ctx context.Context, floors func(*conn, sqlstore.Bounds) (sqlstore.Floors, error), upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		f, err := floors(c, b)
		if err == nil {
			rows, err = pack.Older(ctx, history{c}, f, upTo, after, limit)
		}
		return err
	})
	var corrupt *sqlstore.CorruptError
	if err != nil && (len(rows) == 0 || !errors.As(err, &corrupt)) { // the rows before it come first
		return nil, fmt.Errorf("reading history: %w", err)
	}
	return rows, nil
}
