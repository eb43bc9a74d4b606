package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/lent"
)

// lend adds rows of wholeColumns to pieces, and hands them out.
func lend(rows pgx.Rows, to *lent.Pieces) error {
	defer rows.Close()
	c := cells{rows: rows}
	for rows.Next() {
		if err := c.add(to); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return to.Flush()
}

// cells are the columns of a row where the connection has read them to, which is the connection's until the next row.
type cells struct {
	rows pgx.Rows
	of   []pgconn.FieldDescription
	raw  [][]byte
	room []byte // of a value that came as text
}

func (c *cells) add(to *lent.Pieces) error {
	c.raw = c.rows.RawValues()
	if c.of == nil {
		c.of = c.rows.FieldDescriptions()
	}
	revision, ok1 := c.number(0)
	resource, ok2 := c.text(1)
	namespace, ok3 := c.text(2)
	name, ok4 := c.text(3)
	created, ok5 := c.number(4)
	value, ok6 := c.bytes(5)
	if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 {
		return to.Add(revision, created, resource, namespace, name, value)
	}
	return scanned(c.rows, to)
}

// scanned adds a row as package pgx decodes it, which makes memory for each column: what the columns of kv are not by
// themselves, but somebody may have made of them, and what is wrong with them, it knows.
func scanned(rows pgx.Rows, to *lent.Pieces) error {
	var r sqlstore.Row
	var value pgtype.DriverBytes // pgx's own, until the next row
	if err := rows.Scan(&r.Revision, &r.Key.Resource, &r.Key.Namespace, &r.Key.Name, &r.Created, &value); err != nil {
		return err
	}
	return to.Add(r.Revision, r.Created, []byte(r.Key.Resource), []byte(r.Key.Namespace), []byte(r.Key.Name), value)
}

// is says that a column has a type, and a value.
func (c *cells) is(i int, oid uint32) bool { return c.of[i].DataTypeOID == oid && c.raw[i] != nil }

func (c *cells) number(i int) (int64, bool) {
	switch raw := c.raw[i]; {
	case !c.is(i, pgtype.Int8OID):
	case c.of[i].Format == pgx.TextFormatCode:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return n, err == nil
	case len(raw) == 8:
		return int64(binary.BigEndian.Uint64(raw)), true
	}
	return 0, false
}

func (c *cells) text(i int) ([]byte, bool) { return c.raw[i], c.is(i, pgtype.TextOID) }

func (c *cells) bytes(i int) ([]byte, bool) {
	raw := c.raw[i]
	if !c.is(i, pgtype.ByteaOID) || c.of[i].Format != pgx.TextFormatCode {
		return raw, c.is(i, pgtype.ByteaOID)
	}
	if len(raw) < 2 || string(raw[:2]) != `\x` {
		return nil, false
	}
	var err error
	c.room, err = hex.AppendDecode(c.room[:0], raw[2:])
	return c.room, err == nil
}
