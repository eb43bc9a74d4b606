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
	isText(i int) bool
	isNull(i int) bool
	value(i int) []byte // whatever it is: what somebody wrote by hand must stay readable
}

// adder adds rows of lentColumns to pieces.
type adder struct {
	to   *lent.Pieces
	sums sqlstore.Summer
	// seen holds a row to something else; nil: to nothing. What it returns is the row's damage.
	seen func(revision int64, key uint32) error
}

func (a *adder) add(row cells) error {
	revision, ok1 := row.number(0)
	created, ok2 := row.number(4)
	if !ok1 || !ok2 {
		key := sqlstore.Key{Resource: string(row.text(1)), Namespace: string(row.text(2)), Name: string(row.text(3))}
		return &sqlstore.CorruptError{Key: key, Revision: revision, Reason: "a column has another type"}
	}
	resource, namespace, name, value := row.text(1), row.text(2), row.text(3), row.value(5)
	if err := a.to.Add(revision, created, resource, namespace, name, value); err != nil {
		return err
	}
	err := a.damage(row, revision, created, resource, namespace, name, value)
	if a.seen != nil {
		if e := a.seen(revision, a.sums.Key(resource, namespace, name)); err == nil {
			err = e
		}
	}
	if err != nil {
		a.to.Damage(err)
	}
	return nil
}

// damage holds a row to its checksum, where it has one.
func (a *adder) damage(row cells, revision, created int64, resource, namespace, name, value []byte) error {
	if row.isNull(9) {
		return nil
	}
	stored, ok := row.number(9)
	if !ok {
		return &sqlstore.DamageError{Reason: "its checksum is not a number"}
	}
	if !row.isText(1) || !row.isText(2) || !row.isText(3) {
		return &sqlstore.DamageError{Reason: "its key is not text"}
	}
	deleted, _ := row.number(6)
	written, ok := row.number(8)
	if !ok {
		return &sqlstore.DamageError{Reason: "its time is not a number"}
	}
	var expires *int64
	if at, ok := row.number(7); ok {
		expires = &at
	}
	if computed := a.sums.Lent(revision, created, resource, namespace, name, deleted != 0, value, expires, written); computed != stored {
		return sqlstore.SumError(stored, computed)
	}
	return nil
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

func (v madeCells) isText(i int) bool {
	_, ok := v[i].(string)
	return ok
}

func (v madeCells) isNull(i int) bool { return v[i] == nil }

func (v madeCells) text(i int) []byte { return []byte(text(v[i])) }

func (v madeCells) value(i int) []byte { return blob(v[i]) }
