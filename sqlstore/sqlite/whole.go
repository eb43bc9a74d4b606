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

// ReadAll implements sqlstore.Reader: on several connections, each in the order of the table in the file. Key
// order would visit its pages at random. Each piece is a transaction of its own, so that the log can be
// copied in the meantime: revisions define the snapshot.
func (d *Driver) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	indexed, err := d.indexed(ctx, revision)
	if err != nil {
		return fmt.Errorf("reading everything at %d: %w", revision, err)
	}
	var mu sync.Mutex
	var read total
	all := newSpans(span{0, revision})
	group, within := errgroup.WithContext(ctx)
	for range d.parallel() {
		group.Go(func() error {
			defer all.end()
			p := pieces{Pieces: sqlstore.Pieces{Take: take}}
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				read.add(p.total)
			}()
			for s, ok := all.next(); ok; s, ok = all.next() {
				rows, rest, err := d.readSpan(within, s, revision, &p)
				if err != nil {
					return err
				}
				all.done(rows, rest)
			}
			return nil
		})
	}
	err = group.Wait()
	if err == nil && read != indexed {
		err = fmt.Errorf("%w: the table has %d rows, the indexes have %d", sqlstore.ErrIndexMismatch, read.rows, indexed.rows)
	}
	if err != nil {
		return fmt.Errorf("reading everything at %d: %w", revision, err)
	}
	return nil
}

// parallel returns the number of connections that share a large read: one is left for others.
func (d *Driver) parallel() int { return max(1, min(d.opened-1, runtime.GOMAXPROCS(0))) }

// readSpan passes on the rows of a revision that were written within a span. rest is the remainder of the
// span if it has too many rows.
func (d *Driver) readSpan(ctx context.Context, s span, revision int64, p *pieces) (rows int, rest span, err error) {
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		p.dec.c = c
		err := c.query(context.Background(), func(v []driver.Value) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows++
			return p.add(v)
		}, qWhole, s.after, s.to, revision, int64(spanRows))
		if err != nil {
			return err
		}
		return p.Flush()
	})
	if rows == spanRows {
		rest = span{p.Last, s.to}
	}
	return rows, rest, err
}

// pieces hands out rows of the table, and counts them. It is for one goroutine.
type pieces struct {
	sqlstore.Pieces
	total total
	dec   decoder
}

func (p *pieces) add(v []driver.Value) error {
	row, err := p.dec.row(v)
	if err != nil {
		return err
	}
	p.total.add(total{rows: 1, sum: row.Revision % sumModulus})
	return p.Add(row)
}

// span is a range of revisions: (after, to].
type span struct{ after, to int64 }

// spanRows bounds the rows in one reading of a span; spans are made so that they have about as
// many.
const spanRows = 4096

// spans are the ranges that several readers have not read yet. Revisions are not spread evenly, because
// replaced rows are gone, so ranges grow where rows are few.
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

// next returns the next span. It waits while other readers may return a remainder; false: all is read, or a
// reader has failed. Each span is followed by done, or by end.
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

// done records how many rows a span had, and the rest of the span.
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
	case rows < spanRows/2 && s.width < sqlstore.MaxRevision:
		s.width *= 2
	}
	s.moved.Broadcast()
}

// end is called when a reader takes no more spans.
func (s *spans) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.moved.Broadcast()
}
