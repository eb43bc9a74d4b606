package sqlstore

import (
	"context"
	"time"
)

// WholeReader is a Driver that reads everything sooner than page by page in key order.
type WholeReader interface {
	// ReadAll is what Store.ReadAll promises.
	ReadAll(ctx context.Context, revision int64, take func(rows []Row) error) error
}

// ChecksRows is that of the driver: ReadAll finds what is not as it was written.
func (s *Store) ChecksRows() bool { return s.driver.ChecksRows() }

// ReadAll hands out every row of the snapshot at a revision once, in any order, in
// pieces; of each row the key, the revisions it was written and created at, and the
// value. take may be called by several goroutines at once, each time with at least one
// row. What it is given is lent: it must copy what it keeps. An error of take ends the reading.
// Errors: CompactedError, FutureError, and those of take.
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
