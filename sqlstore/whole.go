package sqlstore

import (
	"context"
	"errors"
)

// ErrIndexMismatch: the table and its indexes do not have the same rows, so some may be lost, or ended ones live again.
// CheckRows finds them.
var ErrIndexMismatch = errors.New("the table and its indexes do not have the same rows")

// ChecksRows reports whether ReadAll of the driver finds damaged rows.
func (s *Store) ChecksRows() bool { return s.driver.ChecksRows() }

// CheckRows calls that of the driver.
func (s *Store) CheckRows(ctx context.Context, values bool, page func(differ []Row) error) error {
	return s.driver.CheckRows(ctx, values, page)
}

// ReadAll calls that of the driver, and decrypts values.
func (s *Store) ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) error {
	return s.driver.ReadAll(ctx, revision, s.opening(ctx, take))
}

// ReadPages implements ReadAll for a driver that has no faster way than page by page in key order.
func ReadPages(ctx context.Context, from Reader, revision int64, take func(rows []Row) error) error {
	req := ScanRequest{Limit: wholePage, Bytes: ChangesBytes, Revision: revision}
	for {
		rows, err := from.Scan(ctx, req)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			req.After = rows[len(rows)-1].Key
			if err := take(rows); err != nil {
				return err
			}
		}
		if req.Ends(rows) {
			return ctx.Err()
		}
	}
}

const wholePage = 1000

// Pieces passes on rows in pieces whose size suits processor caches: drivers read large numbers of rows with
// it. It is for one goroutine.
type Pieces struct {
	Take func(rows []Row) error
	Last int64 // revision of the last row that was added

	rows  []Row
	bytes int // of their values
}

const (
	pieceRows  = 64
	pieceBytes = 256 << 10
)

// Add adds a row. An error is that of Take.
func (p *Pieces) Add(row Row) error {
	if len(p.rows) == pieceRows || len(p.rows) > 0 && p.bytes+len(row.Value) > pieceBytes {
		if err := p.Flush(); err != nil {
			return err
		}
	}
	p.rows, p.bytes, p.Last = append(p.rows, row), p.bytes+len(row.Value), row.Revision
	return nil
}

// Flush passes on the rest. An error is that of Take.
func (p *Pieces) Flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	err := p.Take(p.rows)
	clear(p.rows)
	p.rows, p.bytes = p.rows[:0], 0
	return err
}
