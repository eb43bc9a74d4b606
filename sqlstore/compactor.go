package sqlstore

import (
	"context"
	"errors"
	"time"
)

const (
	trimRows  = 500 // in one transaction: short enough for writers not to notice
	trimShare = 4   // the trimmer rests this many times as long as it worked
)

// compact enforces the retention while this server leads.
func (s *Store) compact(ctx context.Context) {
	for {
		if err := s.compactOnce(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("compaction failed and will be tried again", "error", err)
		}
		if !sleep(ctx, s.cfg.CompactEvery) {
			return
		}
	}
}

func (s *Store) compactOnce(ctx context.Context) error {
	to, err := s.driver.RevisionAt(ctx, s.cfg.Clock().Add(-s.cfg.Retention))
	if err != nil {
		return err
	}
	return s.trim(ctx, to)
}

// trim deletes up to a revision in small transactions, with rests between that
// leave most of the database's time to writers.
func (s *Store) trim(ctx context.Context, to int64) error {
	for {
		start := time.Now()
		n, err := s.driver.Trim(ctx, to, trimRows)
		if err != nil {
			return err
		}
		raise(&s.floor, to)
		s.cfg.Observer.Trimmed(to, n)
		if n < trimRows {
			return nil
		}
		if !sleep(ctx, trimShare*time.Since(start)) {
			return ctx.Err()
		}
	}
}

const expirePage = 500

// expire deletes rows whose time has come, as ordinary deletes that watchers see.
func (s *Store) expire(ctx context.Context) {
	for {
		more, err := s.expireOnce(ctx)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("expiry failed and will be tried again", "error", err)
		}
		if !more && !sleep(ctx, s.cfg.ExpireEvery) || ctx.Err() != nil {
			return
		}
	}
}

func (s *Store) expireOnce(ctx context.Context) (more bool, err error) {
	rows, err := s.driver.Expired(ctx, s.cfg.Clock(), expirePage)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	writes := make([]*write, len(rows))
	for i := range rows {
		op := Op{Verb: Delete, Key: rows[i].Key, Expect: rows[i].Revision, Value: rows[i].Value}
		writes[i] = &write{txn: Txn{Ops: []Op{op}}, size: len(op.Value), done: make(chan struct{})}
		s.queue.add(writes[i])
	}
	deleted := 0
	for _, w := range writes {
		select {
		case <-w.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		var conflict *ConflictError
		var gone *NotFoundError
		switch e := w.out.Err; {
		case e == nil:
			deleted++
		case errors.As(e, &conflict) || errors.As(e, &gone): // renewed or deleted meanwhile
		default:
			err = e
		}
	}
	s.cfg.Observer.Expired(deleted)
	return err == nil && len(rows) == expirePage, err
}
