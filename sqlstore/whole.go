package sqlstore

import (
	"context"
	"errors"
	"time"
)

// ErrIndexMismatch: the table and its indexes do not have the same rows, so some may be lost, or live that had ended.
// CheckIndexes tells which.
var ErrIndexMismatch = errors.New("the table and its indexes do not have the same rows")

// WholeReader is a Driver that reads everything sooner than page by page in key order.
type WholeReader interface {
	// ReadAll is what Store.ReadAll promises.
	ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) error
}

// ChecksRows is that of the driver: ReadAll finds what is not as it was written.
func (s *Store) ChecksRows() bool { return s.driver.ChecksRows() }

// CheckIndexes is that of the driver.
func (s *Store) CheckIndexes(ctx context.Context, page func(differ []Row) error) error {
	return s.driver.CheckIndexes(ctx, page)
}

// ReadAll hands out every row of the snapshot at a revision once, in any order, in
// pieces; of each row the key, the revisions it was written and created at, and the
// value. take may be called by several goroutines at once, each time with at least one
// row. What it is given is lent: it must copy what it keeps. An error of take ends the reading.
// Errors: CompactedError, FutureError, those of take, and ErrIndexMismatch when all that the table has was handed out.
func (s *Store) ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) (err error) {
	if s.whole != nil {
		began := time.Now()
		defer func() {
			s.cfg.Observer.Queried("read_all", time.Since(began), err)
			s.refused.tell("read_all", err)
		}()
		return s.whole.ReadAll(ctx, revision, s.opening(ctx, take))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for page := range s.pages(ctx, revision) {
		if page.err != nil {
			return page.err
		}
		if len(page.rows) == 0 {
			continue
		}
		if err := take(page.rows); err != nil {
			return err
		}
	}
	return ctx.Err()
}

const wholePage = 1000

type page struct {
	rows []Row
	err  error
}

// pages scans a snapshot, one page ahead of its reader. It ends after the last page,
// an error, or with ctx, which its reader must end.
func (s *Store) pages(ctx context.Context, revision int64) <-chan page {
	out := make(chan page, 1)
	go func() {
		defer close(out)
		req := ScanRequest{Limit: wholePage, Revision: revision}
		for {
			rows, err := s.Scan(ctx, req)
			select {
			case out <- page{rows, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || len(rows) < wholePage {
				return
			}
			req.After = rows[len(rows)-1].Key
		}
	}()
	return out
}

// Pieces hands out rows, some at a time, as large together as processors like to have at hand: drivers read much with it.
// It is for one goroutine.
type Pieces struct {
	Take func(rows []Row) error
	Last int64 // revision of the row that was added last

	rows  []Row
	bytes int // of their values
}

const (
	pieceRows  = 64
	pieceBytes = 256 << 10
)

// Add takes a row. An error is that of Take.
func (p *Pieces) Add(row Row) error {
	if len(p.rows) == pieceRows || len(p.rows) > 0 && p.bytes+len(row.Value) > pieceBytes {
		if err := p.Flush(); err != nil {
			return err
		}
	}
	p.rows, p.bytes, p.Last = append(p.rows, row), p.bytes+len(row.Value), row.Revision
	return nil
}

// Flush hands out what is left. An error is that of Take.
func (p *Pieces) Flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	err := p.Take(p.rows)
	clear(p.rows)
	p.rows, p.bytes = p.rows[:0], 0
	return err
}
