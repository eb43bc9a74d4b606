package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// A value of sqlstore.LargeValue bytes or more is not in its row but in kv_pieces, and the column value of the row is an integer, the
// id of the value in kv_large. So SQLite does not write the value again when a later revision ends the row, and the
// pieces can be written before the row, in short transactions (stage.go) that other writers hardly notice.
//
// A value belongs to one row: kv_large has its revision, which the transaction sets that inserts the row. Until then no row holds
// the value, and the sweeper (sweep.go) abandons it if its writer gives it up or does not commit in time: the revision becomes
// 0, and no row can hold it any more. The sweeper then deletes its pieces in steps. The transaction that deletes a row also
// drops its value.
//
// Packing leaves such rows in kv until their history ends: a pack has at most one value of this size, so it would only write the value
// again, in one transaction.
//
// Large values that older versions wrote into rows stay there.

// pieceBytes is the size of a piece. Another write waits for one at most, and not for its sync.
const pieceBytes = 256 << 10

// isLarge reports whether a value is stored in pieces.
func isLarge(value []byte) bool { return len(value) >= sqlstore.LargeValue }

// beginLarge makes a value without pieces, in the open transaction, and returns its id. revision is nil while no row has it.
func beginLarge(w *conn, revision any, micros int64) (id int64, err error) {
	if err := w.exec(qBeginLarge, revision, micros); err != nil {
		return 0, err
	}
	if id, err = w.number(qLargeBegun); err != nil {
		return 0, err
	}
	return id, w.exec(qFence, int64(sqlstore.LargeSchema))
}

// putLarge writes a whole value for the row of a revision, in the open transaction, and returns its id.
func putLarge(w *conn, revision, micros int64, value []byte) (id int64, err error) {
	if id, err = beginLarge(w, revision, micros); err != nil {
		return 0, err
	}
	for n := int64(0); len(value) > 0; n++ {
		piece := value[:min(len(value), pieceBytes)]
		if err := w.exec(qAddPiece, id, n, piece); err != nil {
			return 0, err
		}
		value = value[len(piece):]
	}
	return id, nil
}

// holdLarge returns the id of a value for the row of a revision: of the staged one if all of it is still there, otherwise of one that
// it writes.
func holdLarge(w *conn, staged, revision, micros int64, value []byte) (int64, error) {
	if staged != 0 {
		var v [2]driver.Value
		if _, err := w.one(v[:], qPiecesBytes, staged); err != nil {
			return 0, err
		}
		if v[0] == int64((len(value)+pieceBytes-1)/pieceBytes) && v[1] == int64(len(value)) {
			if n, err := w.execCount(qHoldLarge, staged, revision); err != nil || n == 1 {
				return staged, err
			}
		}
	}
	return putLarge(w, revision, micros, value)
}

// largest bounds the memory for a value whose pieces are damaged: SQLite stores none that is larger.
const largest = 1 << 30

// large reads a value that is stored in pieces, also while the connection reads the row. damage is not nil if pieces are missing.
func (c *conn) large(id int64) (value []byte, damage, err error) {
	defer func(dest []driver.Value) { c.dest = dest }(c.dest) // the columns of the row
	c.dest = nil
	var v [2]driver.Value
	if _, err := c.one(v[:], qPiecesBytes, id); err != nil {
		return nil, nil, err
	}
	size, _ := v[1].(int64)
	if size <= 0 || size > largest {
		return []byte{}, &sqlstore.DamageError{Reason: "the pieces of its value are missing"}, nil
	}
	value = make([]byte, 0, size)
	next := int64(0)
	err = c.query(context.Background(), func(v []driver.Value) error {
		if v[0] != next && damage == nil {
			damage = &sqlstore.DamageError{Reason: fmt.Sprintf("piece %d of its value is missing", next)}
		}
		next++
		value = append(value, blob(v[1])...)
		return nil
	}, qPieces, id)
	return value, damage, err
}

// dropLarge drops the value of the row of a revision, if it is in pieces.
func dropLarge(w *conn, revision int64) error { return w.exec(qDropLarge, revision) }

// unkeep deletes a row that must be as it was read. A value in pieces, which was not read, is dropped.
func unkeep(w *conn, row *sqlstore.Row) error {
	if row.Value != nil {
		return one(w.execCount(qUnkeep, row.Revision, row.Superseded, row.Value))
	}
	if err := one(w.execCount(qUnkeepLarge, row.Revision, row.Superseded)); err != nil {
		return err
	}
	return dropLarge(w, row.Revision)
}

// checkLarge reads the rows of a page whose values are in pieces, one by one, and returns those that are damaged.
func checkLarge(ctx context.Context, c *conn, from, to any) (differ []sqlstore.Row, err error) {
	dec := decoder{c: c}
	err = c.query(context.Background(), func(v []driver.Value) error {
		row, err := dec.row(v)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && row.Damaged != nil {
			differ = append(differ, sqlstore.Row{Key: row.Key, Revision: row.Revision, Created: row.Revision, Superseded: row.Superseded, Value: []byte{}, Damaged: row.Damaged})
		}
		return err
	}, qCheckLarge, from, to)
	return differ, err
}

// unfence admits binaries of older schemas again once no value is stored in pieces, in the open transaction.
func unfence(w *conn) error {
	var v [2]driver.Value
	if _, err := w.one(v[:1], qAnyLarge); err != nil || v[0] != int64(0) {
		return err
	}
	b, err := bounds(w)
	if err != nil {
		return err
	}
	f, err := floors(w, b)
	if err != nil {
		return err
	}
	if _, err := w.one(v[:], qReserved); err != nil {
		return err
	}
	oldest := int64(sqlstore.UnpackedSchema)
	switch {
	case v[0] != nil:
		oldest = sqlstore.RelaxedSchema
	case f.Past != nil:
		oldest = sqlstore.PackedSchema
	}
	return w.exec(qCompatible, int64(sqlstore.LargeSchema), oldest)
}
