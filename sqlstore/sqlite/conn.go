package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time. It uses the driver's connection directly: on the
// write path database/sql would cost as much as SQLite itself.
type conn struct {
	raw     driver.Conn
	stmts   map[string]driver.Stmt
	args    []driver.NamedValue
	dest    []driver.Value
	relaxed bool // commits do not wait for the disk
}

// connect opens a connection and sets its pragmas; every connection is made here.
func connect(path string, pragmas []string) (*conn, error) {
	holdSlots()
	raw, err := opener.Open(dsn(path))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, translate(err))
	}
	c := &conn{raw: raw, stmts: make(map[string]driver.Stmt)}
	if err := c.set(path, pragmas); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// set sets pragmas; errors name the path of the file.
func (c *conn) set(path string, pragmas []string) error {
	for _, p := range pragmas {
		if err := c.pragma(p); err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
	}
	return nil
}

// pragma sets a pragma. Many act when they are prepared, and not when their statement runs again, so it is not kept.
func (c *conn) pragma(p string) error {
	if _, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), "PRAGMA "+p, nil); err != nil {
		return fmt.Errorf("pragma %s: %w", p, translate(err))
	}
	return nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) prepare(query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.raw.Prepare(query)
	if err != nil {
		return nil, translate(err)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement. It is not interruptible: statements of the write path
// are short, and an interrupted one would leave its transaction in doubt.
func (c *conn) exec(query string, args ...any) error {
	_, err := c.execCount(query, args...)
	return err
}

func (c *conn) execCount(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, translate(err)
	}
	return res.RowsAffected()
}

// query calls each for every row. each may keep the values, but not the slice.
// A ctx that can end costs a goroutine; pass context.Background for a short query.
func (c *conn) query(ctx context.Context, each func([]driver.Value) error, query string, args ...any) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, c.bind(args))
	if err != nil {
		return contextOr(ctx, err)
	}
	defer func() {
		if e := rows.Close(); err == nil && e != nil {
			err = translate(e)
		}
	}()
	n := len(rows.Columns())
	if cap(c.dest) < n {
		c.dest = make([]driver.Value, n)
	}
	dest := c.dest[:n]
	for ctx.Err() == nil {
		if err := rows.Next(dest); err == io.EOF {
			return nil
		} else if err != nil {
			return contextOr(ctx, err)
		}
		if err := each(dest); isInterrupt(err) { // of a query within each
			return contextOr(ctx, err)
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// one reads at most one row; found is false if there is none.
func (c *conn) one(dest []driver.Value, query string, args ...any) (found bool, err error) {
	err = c.query(context.Background(), func(v []driver.Value) error {
		if !found {
			copy(dest, v)
			found = true
		}
		return nil
	}, query, args...)
	return found, err
}

// number reads one integer.
func (c *conn) number(query string, args ...any) (int64, error) {
	var v [1]driver.Value
	found, err := c.one(v[:], query, args...)
	if err != nil {
		return 0, err
	}
	n, ok := v[0].(int64)
	if !found || !ok {
		return 0, fmt.Errorf("%q gave no integer but %v", query, v[0])
	}
	return n, nil
}

func contextOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return translate(err)
}
