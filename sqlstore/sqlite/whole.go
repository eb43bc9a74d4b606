package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

var _ sqlstore.WholeReader = (*Driver)(nil)

// ReadAll implements sqlstore.WholeReader: on several connections, and on each in the order
// in which the table lies in the file. Key order would visit its pages at random. Each piece
// of it is a transaction of its own, so that the log can be copied meanwhile: the snapshot is
// one of revisions.
func (d *Driver) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	err := d.snapshot(ctx, func(_ *conn, b sqlstore.Bounds) error { return b.Check(revision) })
	if err != nil {
		return fmt.Errorf("reading everything at %d: %w", revision, err)
	}
	all := newSpans(span{0, revision})
	group, ctx := errgroup.WithContext(ctx)
	for range max(1, min(d.opened-1, runtime.GOMAXPROCS(0))) { // one is left for others
		group.Go(func() error {
			defer all.end()
			for s, ok := all.next(); ok; s, ok = all.next() {
				rows, rest, err := d.readSpan(ctx, s, revision, take)
				if err != nil {
					return err
				}
				all.done(rows, rest)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading everything at %d: %w", revision, err)
	}
	return nil
}

// readSpan hands out what was there at a revision of the rows written within a span. rest is
// what it left of it, as there were too many.
func (d *Driver) readSpan(ctx context.Context, s span, revision int64, take func([]sqlstore.Row) error) (rows int, rest span, err error) {
	l := lender{take: take}
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		err := c.query(context.Background(), func(v []driver.Value) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows++
			return l.lend(v)
		}, qWhole, s.after, s.to, revision, int64(spanRows))
		if err != nil {
			return err
		}
		return l.flush()
	})
	if rows == spanRows {
		rest = span{l.last, s.to}
	}
	return rows, rest, err
}

// A piece of what is lent is as large as processors like to have at hand.
const (
	pieceRows  = 64
	pieceBytes = 256 << 10
)

// lender collects rows into pieces.
type lender struct {
	take  func([]sqlstore.Row) error
	dec   decoder
	piece []sqlstore.Row
	bytes int
	last  int64 // revision
}

// lend takes a row of qWhole.
func (l *lender) lend(v []driver.Value) error {
	var r sqlstore.Row
	var ok1, ok2 bool
	r.Revision, ok1 = v[0].(int64)
	r.Created, ok2 = v[4].(int64)
	r.Key = l.dec.key(v[1], v[2], v[3])
	if !ok1 || !ok2 {
		return &sqlstore.CorruptError{Key: r.Key, Revision: r.Revision, Reason: "a column has another type"}
	}
	r.Value = blob(v[5])
	l.last = r.Revision
	if len(l.piece) == pieceRows || len(l.piece) > 0 && l.bytes+len(r.Value) > pieceBytes {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if l.piece == nil {
		l.piece = make([]sqlstore.Row, 0, pieceRows)
	}
	l.piece = append(l.piece, r)
	l.bytes += len(r.Value)
	return nil
}

func (l *lender) flush() error {
	if len(l.piece) == 0 {
		return nil
	}
	err := l.take(l.piece)
	l.piece, l.bytes = l.piece[:0], 0
	return err
}

// span is a range of revisions: (after, to].
type span struct{ after, to int64 }

// spanRows is how many rows one reading of a span hands out at most, and about how many it
// should.
const spanRows = 4096

// spans are the ranges that several readers have still to read. Revisions are not spread
// evenly: what was replaced is gone, so ranges grow where there is little.
type spans struct {
	mu    sync.Mutex
	moved sync.Cond
	left  []span
	busy  int // readers that may hand something back
	ended bool
	width int64
}

func newSpans(all span) *spans {
	s := &spans{left: []span{all}, width: spanRows}
	s.moved.L = &s.mu
	return s
}

// next is what to read next. It waits while there is nothing but what others may hand back;
// false: all is read, or a reader has given up. Each span is followed by done, or by end.
func (s *spans) next() (piece span, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.left) == 0 && s.busy > 0 && !s.ended {
		s.moved.Wait()
	}
	if len(s.left) == 0 || s.ended {
		return span{}, false
	}
	at := len(s.left) - 1
	piece = s.left[at]
	if piece.to-piece.after > s.width {
		piece.to = piece.after + s.width
		s.left[at].after = piece.to
	} else {
		s.left = s.left[:at]
	}
	s.busy++
	return piece, true
}

// done says how many rows a span had, and what is left of it.
func (s *spans) done(rows int, rest span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if rest.to > rest.after {
		s.left = append(s.left, rest)
	}
	switch {
	case rows == spanRows:
		s.width = max(spanRows, s.width/4)
	case rows < spanRows/2 && s.width < 1<<40:
		s.width *= 2
	}
	s.moved.Broadcast()
}

// end says that a reader takes no more spans: nobody waits for it.
func (s *spans) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.moved.Broadcast()
}
