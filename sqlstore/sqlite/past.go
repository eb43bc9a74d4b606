package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

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

// check says whether a snapshot can be read, and whether it reaches into packs.
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

// stored is a pack and its place.
type stored struct {
	pack.Pack
	row int64
}

func scanPack(v []driver.Value) (p stored) {
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
	p.row, _ = v[10].(int64)
	return p
}

func readPacks(ctx context.Context, c *conn, query string, args ...any) (packs []stored, err error) {
	err = c.query(ctx, func(v []driver.Value) error {
		packs = append(packs, scanPack(v))
		return nil
	}, query, args...)
	return packs, err
}

// readPacked is the row of a key at a revision, out of a pack.
func readPacked(ctx context.Context, c *conn, key sqlstore.Key, revision int64) (sqlstore.Row, bool, error) {
	packs, err := readPacks(ctx, c, qPacked, revision, key.Resource, key.Namespace, key.Name)
	if err != nil || len(packs) == 0 {
		return sqlstore.Row{}, false, err
	}
	return packs[0].At(revision)
}

// pastPacked appends the rows of a key below a revision and above a floor, newest first.
func pastPacked(ctx context.Context, c *conn, rows []sqlstore.Row, key sqlstore.Key, before, floor int64, limit int) ([]sqlstore.Row, error) {
	packs, err := readPacks(ctx, c, qPacked, before-1, key.Resource, key.Namespace, key.Name)
	const some = 4
	for next := before; err == nil && len(rows) < limit; {
		for i := range packs {
			if packs[i].First >= before {
				continue
			}
			unfolded, err := packs[i].Rows()
			if err != nil {
				return nil, err
			}
			for _, row := range slices.Backward(unfolded) {
				if row.Revision < before && row.Superseded > floor && len(rows) < limit {
					rows = append(rows, row)
				}
			}
		}
		if packs, err = readPacks(ctx, c, qPackedBelow, next, key.Resource, key.Namespace, key.Name, floor, int64(some)); len(packs) == 0 {
			break
		}
		next = packs[len(packs)-1].Until
	}
	return rows, err
}

// place is where a row of a snapshot lies that is not live.
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
		var packs []stored
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

// unitBytes is how much of one object is packed at once, and a row.
const unitBytes = 256 << 10

// endedRows reads the oldest rows of a key that ended from one revision to another. more says
// that there may be others.
func endedRows(ctx context.Context, c *conn, key sqlstore.Key, from, upTo int64, limit int) (rows []sqlstore.Row, more bool, err error) {
	var dec decoder
	size := 0
	err = c.query(ctx, func(v []driver.Value) error {
		row, err := dec.row(v)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if size += len(row.Value); size > unitBytes {
			return errEnough
		}
		return nil
	}, qEndedRows, from, key.Resource, key.Namespace, key.Name, upTo, int64(limit))
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
func (d *Driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		f, err := floors(c, b)
		for more := true; err == nil && more && len(rows) < limit; {
			floor := f.Of(after.Key.Resource)
			var found []sqlstore.Row
			if found, err = olderOf(ctx, c, after, max(floor, after.Revision), upTo, limit-len(rows)); err != nil {
				break
			}
			for _, row := range found {
				after.Revision = row.Revision
				if row.Superseded > floor {
					rows = append(rows, row)
				}
			}
			if len(found) == 0 {
				more, err = olderKey(c, &after)
			}
		}
		return err
	})
	var corrupt *sqlstore.CorruptError
	if err != nil && (len(rows) == 0 || !errors.As(err, &corrupt)) { // what was before it comes first
		return nil, fmt.Errorf("reading history: %w", err)
	}
	return rows, nil
}

// olderOf reads rows of one key, behind a revision: the rest of a pack, or from kv.
func olderOf(ctx context.Context, c *conn, after sqlstore.Cursor, from, upTo int64, limit int) (rows []sqlstore.Row, err error) {
	k := after.Key
	behind := func(row sqlstore.Row) bool { return row.Revision <= after.Revision || row.Superseded > upTo }
	for until := from; len(rows) == 0; {
		packs, err := readPacks(ctx, c, qPacked, until, k.Resource, k.Namespace, k.Name)
		if err != nil {
			return nil, err
		}
		if len(packs) == 0 {
			rows, _, err = endedRows(ctx, c, k, from, upTo, limit+2) // of which two may be those before
			rows = slices.DeleteFunc(rows, behind)
			return rows[:min(limit, len(rows))], err
		}
		if rows, err = packs[0].Rows(); err != nil {
			return nil, err
		}
		rows, until = slices.DeleteFunc(rows, behind), packs[0].Until
	}
	return rows[:min(limit, len(rows))], nil
}

// olderKey moves to the next key that has ended rows or packs.
func olderKey(c *conn, after *sqlstore.Cursor) (bool, error) {
	k := after.Key
	ended, found1, err1 := nextKey(c, qNextEnded, k.Resource, k.Namespace, k.Name)
	packed, found2, err2 := nextKey(c, qNextPackedAll, int64(0), k.Resource, k.Namespace, k.Name, "")
	if found2 && (!found1 || packed.Compare(ended) < 0) {
		ended = packed
	}
	*after = sqlstore.Cursor{Key: ended}
	return found1 || found2, errors.Join(err1, err2)
}
