package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

// A damaged page of the table, or of what leads to it, can hide rows without any row being wrong. The indexes lie in
// other pages and have each row, so reading everything holds the one to the other. It costs a walk over kv_live, which
// has the keys of the live rows, and 16 bytes of memory for each of them while it lasts.

var _ sqlstore.RowChecker = (*Driver)(nil)

// ChecksRows implements sqlstore.RowChecker.
func (d *Driver) ChecksRows() {}

// listing is what the indexes say is there at a revision, in the order of revisions.
type listing struct {
	rows []listedRow
	seen []bool // by place in rows; each is set by the one goroutine that meets the row
}

type listedRow struct {
	revision int64
	key      uint32 // checksum of the key
	ended    bool   // kv_ended has it, which has no keys
}

// list reads the indexes. It is one transaction, as a row that ends meanwhile moves from one to the other.
func (d *Driver) list(ctx context.Context, revision int64) (*listing, error) {
	l := &listing{}
	var sums sqlstore.Summer
	err := d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		if newest, err := c.number(qNewest); err != nil {
			return err
		} else if newest > b.Head || b.Floor > b.Head {
			return &sqlstore.CorruptError{Revision: newest, Reason: fmt.Sprintf("kv_meta has the newest revision %d and the compacted one %d, and the table goes on to %d", b.Head, b.Floor, newest)}
		}
		if err := c.lend(func(row cells) error {
			n, _ := row.number(0)
			l.rows = append(l.rows, listedRow{revision: n, key: sums.Key(row.text(1), row.text(2), row.text(3))})
			return ctx.Err()
		}, qListed, revision); err != nil {
			return err
		}
		return c.lend(func(row cells) error {
			n, _ := row.number(0)
			l.rows = append(l.rows, listedRow{revision: n, ended: true})
			return ctx.Err()
		}, qOutlineEnded, revision)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.rows, func(a, b listedRow) int { return cmp.Compare(a.revision, b.revision) })
	l.seen = make([]bool, len(l.rows))
	return l, nil
}

// row holds a row of the table to the indexes. The error is the row's damage.
func (l *listing) row(revision int64, key uint32) error {
	i, ok := slices.BinarySearchFunc(l.rows, revision, func(r listedRow, n int64) int { return cmp.Compare(r.revision, n) })
	if !ok {
		return &sqlstore.DamageError{Reason: "no index has the row, so it may have ended"}
	}
	l.seen[i] = true
	if r := &l.rows[i]; !r.ended && r.key != key {
		return &sqlstore.DamageError{Reason: "the index kv_live has another key for the row"}
	}
	return nil
}

// missing hands out what the indexes have and the table has not.
func (d *Driver) missing(ctx context.Context, l *listing, revision int64, take func([]sqlstore.Row) error) error {
	lost := map[int64]bool{}
	for i, seen := range l.seen {
		if !seen {
			lost[l.rows[i].revision] = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	reason := &sqlstore.DamageError{Reason: "an index has the row, and the table has it not"}
	var rows []sqlstore.Row
	err := d.snapshot(ctx, func(c *conn, _ sqlstore.Bounds) error { // kv_live has the keys
		return c.lend(func(row cells) error {
			n, _ := row.number(0)
			if !lost[n] {
				return ctx.Err()
			}
			key := sqlstore.Key{Resource: string(row.text(1)), Namespace: string(row.text(2)), Name: string(row.text(3))}
			rows = append(rows, sqlstore.Row{Key: key, Revision: n, Created: n, Value: []byte{}, Damaged: reason})
			delete(lost, n)
			return ctx.Err()
		}, qListed, revision)
	})
	for n := range lost { // which ended since
		if err == nil {
			err = &sqlstore.CorruptError{Revision: n, Reason: reason.Error()}
		}
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	return take(rows)
}
