package sqlite

import (
	"slices"
	"sync"

	"github.com/rowlock/rowlock/sqlstore"
)

// A piece of what is lent is as large as processors like to have at hand.
const (
	pieceRows  = 64
	pieceBytes = 256 << 10
)

// lender collects rows into pieces, whose memory it uses again.
type lender struct {
	take                func([]sqlstore.Row) error
	resource, namespace string // of the last row: neighbours share them
	piece               []sqlstore.Row
	values              []byte // of piece; they stay where they are while there is one
	last                int64  // revision
}

// lenders are those that nobody uses: who holds memory to the rows needs some many times a minute.
var lenders = sync.Pool{New: func() any { return new(lender) }}

func newLender(take func([]sqlstore.Row) error) *lender {
	l := lenders.Get().(*lender)
	l.take = take
	return l
}

// end gives the memory back. What was not flushed is dropped.
func (l *lender) end() {
	clear(l.piece[:cap(l.piece)])
	*l = lender{piece: l.piece[:0], values: l.values[:0]}
	if cap(l.values) > pieceBytes { // one value alone was larger
		l.values = nil
	}
	lenders.Put(l)
}

// lend takes a row of qWhole.
func (l *lender) lend(row cells) error {
	var r sqlstore.Row
	var ok1, ok2 bool
	r.Revision, ok1 = row.number(0)
	r.Created, ok2 = row.number(4)
	r.Key = sqlstore.Key{Resource: shared(&l.resource, row.text(1)), Namespace: shared(&l.namespace, row.text(2)), Name: string(row.text(3))}
	if !ok1 || !ok2 {
		return &sqlstore.CorruptError{Key: r.Key, Revision: r.Revision, Reason: "a column has another type"}
	}
	value := row.value(5)
	l.last = r.Revision
	if len(l.piece) == pieceRows || len(l.piece) > 0 && len(l.values)+len(value) > pieceBytes {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.piece == nil {
		l.piece = make([]sqlstore.Row, 0, pieceRows)
	}
	r.Value = l.keep(value)
	l.piece = append(l.piece, r)
	return nil
}

// keep copies a value. Where there is no room for it, there is no other one in the piece.
func (l *lender) keep(value []byte) []byte {
	if l.values == nil || cap(l.values)-len(l.values) < len(value) {
		l.values = make([]byte, 0, max(pieceBytes, len(value)))
	}
	from := len(l.values)
	l.values = append(l.values, value...)
	return slices.Clip(l.values[from:])
}

func (l *lender) flush() error {
	if len(l.piece) == 0 {
		return nil
	}
	err := l.take(l.piece)
	l.piece, l.values = l.piece[:0], l.values[:0]
	return err
}

// shared is share of text that is not made unless it differs.
func shared(last *string, text []byte) string {
	if string(text) != *last {
		*last = string(text)
	}
	return *last
}
