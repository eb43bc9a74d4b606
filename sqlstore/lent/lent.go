// Package lent collects rows that are only lent into pieces, whose memory is used again.
package lent

import (
	"slices"
	"sync"

	"github.com/rowlock/rowlock/sqlstore"
)

// A piece is as large as processors like to have at hand.
const (
	pieceRows  = 64
	pieceBytes = 256 << 10
)

// Pieces is for one goroutine.
type Pieces struct {
	Last int64 // revision of the row that was added last

	take                func([]sqlstore.Row) error
	resource, namespace string // of the last row: neighbours share them
	rows                []sqlstore.Row
	values              []byte // of rows; they stay where they are while there is one
}

// unused are those that nobody uses: who holds memory to the rows needs some many times a minute.
var unused = sync.Pool{New: func() any { return new(Pieces) }}

// New hands pieces to take, which must copy what it keeps of their values. End is to be called.
func New(take func([]sqlstore.Row) error) *Pieces {
	p := unused.Get().(*Pieces)
	p.take = take
	return p
}

// End gives the memory back. What was not flushed is dropped.
func (p *Pieces) End() {
	clear(p.rows[:cap(p.rows)])
	*p = Pieces{rows: p.rows[:0], values: p.values[:0]}
	if cap(p.values) > pieceBytes { // one value alone was larger
		p.values = nil
	}
	unused.Put(p)
}

// Add takes a row. Its columns may be lent, too: they are copied. An error is that of take.
func (p *Pieces) Add(revision, created int64, resource, namespace, name, value []byte) error {
	p.Last = revision
	if len(p.rows) == pieceRows || len(p.rows) > 0 && len(p.values)+len(value) > pieceBytes {
		if err := p.Flush(); err != nil {
			return err
		}
	}
	if p.rows == nil {
		p.rows = make([]sqlstore.Row, 0, pieceRows)
	}
	p.rows = append(p.rows, sqlstore.Row{
		Key:      sqlstore.Key{Resource: shared(&p.resource, resource), Namespace: shared(&p.namespace, namespace), Name: string(name)},
		Revision: revision, Created: created, Value: p.keep(value),
	})
	return nil
}

// Damage says that the row that was added last is not what was written.
func (p *Pieces) Damage(err error) { p.rows[len(p.rows)-1].Damaged = err }

// keep copies a value. Where there is no room for it, there is no other one in the piece.
func (p *Pieces) keep(value []byte) []byte {
	if p.values == nil || cap(p.values)-len(p.values) < len(value) {
		p.values = make([]byte, 0, max(pieceBytes, len(value)))
	}
	from := len(p.values)
	p.values = append(p.values, value...)
	return slices.Clip(p.values[from:])
}

// Flush hands out what is left. An error is that of take.
func (p *Pieces) Flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	err := p.take(p.rows)
	p.rows, p.values = p.rows[:0], p.values[:0]
	return err
}

// shared is the last text, if this one is the same: then none is made.
func shared(last *string, text []byte) string {
	if string(text) != *last {
		*last = string(text)
	}
	return *last
}
