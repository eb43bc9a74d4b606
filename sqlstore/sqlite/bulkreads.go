package sqlite

import (
	"context"
	"database/sql/driver"
	"net/url"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/lent"
)

// BulkReads says how rows are read that are only lent: all of them, or many by their revisions.
type BulkReads string

const (
	LentReads     BulkReads = "lent"     // from SQLite's own memory; where that cannot be done, as StandardReads
	StandardReads BulkReads = "standard" // by SQLite's Go driver, which makes memory for each value
)

// connectReader opens a connection for reading.
func (d *Driver) connectReader() (*conn, error) {
	if d.cfg.BulkReads == StandardReads {
		return connect(d.path, d.readerPragmas())
	}
	var c *conn
	bulk, err := openRaw(func(value string) (err error) {
		c, err = connectBy(url.Values{rawParam: {value}}, d.path, d.readerPragmas())
		return err
	})
	if err == nil {
		c.bulk = bulk
	}
	return c, err
}

// cells are the columns of a row, lent until the next one.
type cells interface {
	number(i int) (n int64, ok bool) // ok: it is one
	text(i int) []byte               // of a text or a blob; else nothing
	value(i int) []byte              // whatever it is: what somebody wrote by hand must stay readable
}

// add adds a row of qWhole.
func add(to *lent.Pieces, row cells) error {
	revision, ok1 := row.number(0)
	created, ok2 := row.number(4)
	if !ok1 || !ok2 {
		key := sqlstore.Key{Resource: string(row.text(1)), Namespace: string(row.text(2)), Name: string(row.text(3))}
		return &sqlstore.CorruptError{Key: key, Revision: revision, Reason: "a column has another type"}
	}
	return to.Add(revision, created, row.text(1), row.text(2), row.text(3), row.value(5))
}

// lend calls each for every row of a statement.
func (c *conn) lend(each func(cells) error, query string, args ...int64) error {
	if c.bulk != nil {
		return c.bulk.query(each, query, args)
	}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	return c.query(context.Background(), func(v []driver.Value) error { return each(madeCells(v)) }, query, values...)
}

// madeCells are columns that SQLite's Go driver made.
type madeCells []driver.Value

func (v madeCells) number(i int) (n int64, ok bool) {
	n, ok = v[i].(int64)
	return n, ok
}

func (v madeCells) text(i int) []byte { return []byte(text(v[i])) }

func (v madeCells) value(i int) []byte { return blob(v[i]) }
