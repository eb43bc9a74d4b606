package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// A damaged page of the table, or of what leads to it, can hide rows without any row being wrong. The indexes lie in
// other pages and have each row. ReadAll compares how many rows the two have, and the sum of their revisions, which
// SQLite computes within one statement for a twentieth of what reading the rows costs. CheckIndexes compares each row,
// its key and the revision that ended it, which costs twice as much as reading all of them.

// ChecksRows implements sqlstore.Driver.
func (d *Driver) ChecksRows() bool { return true }

// total is how many rows there are, and the sum of their revisions modulo sumModulus, in whatever order.
type total struct{ rows, sum int64 }

// sumModulus is a prime below 2^32: a sum over fewer than 2^31 rows fits, and a bit that flips in a revision changes it.
const sumModulus = 4294967291

func (t *total) add(other total) {
	t.rows += other.rows
	t.sum += other.sum
}

// indexed is the total of the rows that the indexes have at a revision.
func (d *Driver) indexed(ctx context.Context, revision int64) (t total, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		if newest, err := c.number(qNewest); err != nil {
			return err
		} else if newest > b.Head || b.Floor > b.Head {
			return &sqlstore.CorruptError{Revision: newest, Reason: fmt.Sprintf("kv_meta has the newest revision %d and the compacted one %d, and the table goes on to %d", b.Head, b.Floor, newest)}
		}
		for _, query := range []string{qIndexedLive, qIndexedEnded} {
			var v [2]driver.Value
			if _, err := c.one(v[:], query, revision, int64(sumModulus)); err != nil {
				return err
			}
			rows, _ := v[0].(int64)
			sum, _ := v[1].(int64) // NULL where there are none
			t.add(total{rows, sum})
		}
		return nil
	})
	return t, err
}

// checkedRows is how many rows CheckIndexes compares in one statement.
const checkedRows = 256

// CheckIndexes implements sqlstore.Driver. Each page is one statement, which sees one state: others write meanwhile.
func (d *Driver) CheckIndexes(ctx context.Context, page func(differ []sqlstore.Row) error) error {
	var after sqlstore.Row
	for _, query := range []string{qCheckLive, qCheckTable} {
		for n := checkedRows; n == checkedRows; {
			var differ []sqlstore.Row
			n = 0
			err := d.reader(ctx, func(c *conn) error {
				return c.query(context.Background(), func(v []driver.Value) error {
					n++
					after.Key = sqlstore.Key{Resource: text(v[1]), Namespace: text(v[2]), Name: text(v[3])}
					after.Revision, _ = v[0].(int64)
					if reason := text(v[4]); reason != "" {
						superseded, _ := v[5].(int64)
						differ = append(differ, sqlstore.Row{Key: after.Key, Revision: after.Revision, Created: after.Revision, Superseded: superseded, Value: []byte{}, Damaged: &sqlstore.DamageError{Reason: reason}})
					}
					return nil
				}, query, after.Revision, after.Key.Resource, after.Key.Namespace, after.Key.Name, int64(checkedRows))
			})
			if err == nil {
				err = page(differ)
			}
			if err != nil {
				return fmt.Errorf("comparing the table with its indexes: %w", err)
			}
		}
		after = sqlstore.Row{}
	}
	return nil
}
