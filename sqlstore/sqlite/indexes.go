package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"sync"

	"modernc.org/sqlite"

	"github.com/rowlock/rowlock/sqlstore"
)

// A damaged leaf or interior page of the table can hide rows without damage to any other row. The indexes are in
// other pages and have each row. ReadAll compares the number of rows of the two, and the sum of their revisions, which
// SQLite computes within one statement for a twentieth of the cost of reading the rows. CheckRows compares each row,
// its key and the revision that ended it, which costs twice as much as reading all of them. The checksums of values are
// computed by a function that SQLite calls for each row, so that no value is copied into Go's memory; those in pieces are read
// one by one.

// ChecksRows implements sqlstore.Driver.
func (d *Driver) ChecksRows() bool { return true }

// total is the number of rows, and the sum of their revisions modulo sumModulus, independent of their order.
type total struct{ rows, sum int64 }

// sumModulus is a prime below 2^32: a sum over fewer than 2^31 rows fits, and a bit that flips in a revision changes it.
const sumModulus = 4294967291

func (t *total) add(other total) {
	t.rows += other.rows
	t.sum += other.sum
}

// indexed returns the total of the rows that the indexes have at a revision.
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

// checkedRows is the number of rows that CheckRows compares in one statement.
const checkedRows = 256

// CheckRows implements sqlstore.Driver. Each page is one read transaction, which sees one state although others write
// concurrently.
func (d *Driver) CheckRows(ctx context.Context, values bool, page func(differ []sqlstore.Row) error) error {
	var err error
	if values {
		err = d.checkPages(ctx, page, qPageTable, qCheckValues, []any{int64(0)}, []any{int64(math.MaxInt64)})
	}
	if err == nil {
		first, last := []any{"", "", ""}, []any{[]byte{0xff}, "", ""} // a blob is behind every text
		err = d.checkPages(ctx, page, qPageLive, qCheckLive, first, last)
	}
	if err == nil {
		err = d.checkPages(ctx, page, qPageTable, qCheckTable, []any{int64(0)}, []any{int64(math.MaxInt64)})
	}
	if err != nil {
		return fmt.Errorf("comparing the table with its checksums and indexes: %w", err)
	}
	return nil
}

// opener opens connections to SQLite that have the function rowlock_damage, which takes the columns of a row and returns
// the reason why it is damaged, or NULL. It is set while the program starts: package sqlite registers functions on its
// only driver, which must not open connections at the same time.
var opener = registerDamage()

func registerDamage() driver.Driver {
	decoders := sync.Pool{New: func() any { return new(decoder) }}
	sqlite.MustRegisterFunction("rowlock_damage", &sqlite.FunctionImpl{
		NArgs: 11, Deterministic: true, VolatileArgs: true,
		// columns are views of SQLite's memory, so nothing of the row may outlive the call.
		Scalar: func(_ *sqlite.FunctionContext, columns []driver.Value) (driver.Value, error) {
			dec := decoders.Get().(*decoder)
			defer decoders.Put(dec)
			row, err := dec.row(columns)
			dec.resource, dec.namespace = "", ""
			var damage *sqlstore.DamageError
			if err == nil && errors.As(row.Damaged, &damage) {
				return damage.Reason, nil
			}
			return nil, err
		},
	})
	db, err := sql.Open("sqlite", "") // connects to nothing yet
	if err != nil {
		panic(err) // package sqlite registers this name
	}
	defer db.Close()
	return db.Driver()
}

// checkPages checks all pages from a position to the end. bound is the query for the end of a page, and check
// that for its differences.
func (d *Driver) checkPages(ctx context.Context, page func([]sqlstore.Row) error, bound, check string, from, last []any) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var differ []sqlstore.Row
		err := d.snapshot(ctx, func(c *conn, _ sqlstore.Bounds) error {
			end := make([]driver.Value, len(from))
			found, err := c.one(end, bound, append(from[:len(from):len(from)], int64(checkedRows-1))...)
			if err != nil {
				return err
			}
			to := last
			if more = found; found {
				to = make([]any, len(end))
				for i := range end {
					to[i] = end[i]
				}
			}
			err = c.query(context.Background(), func(v []driver.Value) error {
				r := sqlstore.Row{Key: sqlstore.Key{Resource: text(v[1]), Namespace: text(v[2]), Name: text(v[3])}, Value: []byte{}, Damaged: &sqlstore.DamageError{Reason: text(v[4])}}
				r.Revision, _ = v[0].(int64)
				r.Superseded, _ = v[5].(int64)
				r.Created = r.Revision
				differ = append(differ, r)
				return nil
			}, check, append(from[:len(from):len(from)], to...)...)
			if err == nil && check == qCheckValues {
				var large []sqlstore.Row
				large, err = checkLarge(ctx, c, from[0], to[0])
				differ = append(differ, large...)
			}
			from = to
			return err
		})
		if err == nil {
			err = page(differ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
