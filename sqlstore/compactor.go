package sqlstore

import (
	"context"
	"errors"
	"time"
)

// compact enforces the retention while this server leads.
func (s *Store) compact(ctx context.Context) {
	var h *horizon
	for {
		if err := s.compactOnce(ctx, &h); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("compaction failed and will be tried again", "error", err)
		}
		if !s.cfg.Sleep(ctx, s.cfg.CompactEvery) {
			return
		}
	}
}

func (s *Store) compactOnce(ctx context.Context, h **horizon) error {
	b, err := s.Bounds(ctx)
	if err != nil {
		return err
	}
	wall, elapsed := s.cfg.Clock(), s.cfg.Elapsed() // in this order: time between them lets history live longer
	if *h == nil {
		*h = newHorizon(s.cfg.Retention, wall, elapsed, b.Head)
	}
	old, err := s.driver.RevisionAt(ctx, (*h).before(elapsed))
	if err != nil {
		return err
	}
	return s.trim(ctx, (*h).reach(elapsed, b.Head, old))
}

// The trimmer rests this many times as long as it worked: most of the database's time
// is for writers where they wait for it, half of it where they do not.
const (
	restWaited = 4
	restBeside = 1
)

func (s *Store) trim(ctx context.Context, to int64) error {
	rest := restWaited
	if s.driver.TrimsBeside() {
		rest = restBeside
	}
	return Trim(ctx, s.driver, to, rest, func(rows int) {
		raise(&s.floor, to)
		s.cfg.Observer.Trimmed(to, rows)
	})
}

// A trimming transaction takes about as long as trimTime, so that a writer who
// waits for it hardly notices: it may have as many rows as the last ones allowed.
// Where writers do not wait, a longer one spares commits. On a machine that is slow
// for a while, it still keeps up with what is written.
const (
	trimTime            = 3 * time.Millisecond
	trimTimeBeside      = 30 * time.Millisecond
	leastTrim, mostTrim = 100, 1000
	longestRest         = 100 * time.Millisecond
)

// Trim compacts a database up to a revision, in short transactions. After each it
// tells how many rows went, and rests rest times as long as that took, within
// limits. It may be cut short by ctx and begun again. Errors: those of Driver.Trim.
func Trim(ctx context.Context, d Driver, to int64, rest int, trimmed func(rows int)) error {
	aim := trimTime
	if d.TrimsBeside() {
		aim = trimTimeBeside
	}
	for limit := leastTrim; ; {
		start := time.Now()
		n, err := d.Trim(ctx, to, limit)
		if err != nil {
			return err
		}
		trimmed(n)
		if n < limit {
			return nil
		}
		took := time.Since(start)
		if !sleep(ctx, min(time.Duration(rest)*took, longestRest)) {
			return ctx.Err()
		}
		fits := int(int64(limit) * int64(aim) / max(1, int64(took)))
		limit = min(max((limit+fits)/2, leastTrim), mostTrim, 2*limit)
	}
}

const expirePage = 500

// expire deletes rows whose time has come, as ordinary deletes that watchers see.
func (s *Store) expire(ctx context.Context) {
	clock := &cautious{wall: s.cfg.Clock, elapsed: s.cfg.Elapsed}
	for {
		more, err := s.expireOnce(ctx, clock.now())
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("expiry failed and will be tried again", "error", err)
		}
		if !more && !s.cfg.Sleep(ctx, s.cfg.ExpireEvery) || ctx.Err() != nil {
			return
		}
	}
}

func (s *Store) expireOnce(ctx context.Context, now time.Time) (more bool, err error) {
	rows, err := s.driver.Expired(ctx, now, expirePage)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	writes := make([]*write, len(rows))
	for i := range rows {
		op := Op{Verb: Delete, Key: rows[i].Key, Expect: rows[i].Revision, Value: rows[i].Value, AsStored: true}
		writes[i] = &write{txn: Txn{Ops: []Op{op}}, size: len(op.Value), done: make(chan struct{})}
		s.seal(ctx, writes[i]) // which for a value as it is stored only opens it
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
