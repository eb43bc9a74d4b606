package sqlstore

import (
	"context"
	"errors"
	"time"
)

// compact enforces the retention while this server leads.
func (s *Store) compact(ctx context.Context) {
	c := &compaction{Store: s, keeper: keeper{Store: s}, horizons: make(horizons)}
	for {
		if err := c.once(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("compaction failed and will be tried again", "error", err)
		}
		if !s.cfg.Sleep(ctx, s.cfg.CompactEvery) {
			return
		}
	}
}

// compaction is the state of a server while it leads compaction.
type compaction struct {
	*Store
	keeper   keeper
	kept     Retention // in this round
	horizons horizons
	lastPack *time.Duration // when, by Elapsed
}

// once trims if the log has the whole history. Otherwise it packs, once in the period of the log, so that an
// object that is written all the time fills its packs.
func (c *compaction) once(ctx context.Context) (err error) {
	if c.kept, err = c.keeper.retention(ctx); err != nil {
		return err
	}
	if c.kept.packs(c.cfg.LogRetention) {
		now := c.cfg.Elapsed()
		if c.lastPack != nil && now-*c.lastPack < c.cfg.PackEvery {
			_, err := c.floorsNow(ctx) // which remembers the head
			return err
		}
		if err := c.pack(ctx); err != nil {
			return err
		}
		c.lastPack = &now
		return nil
	}
	b, err := c.Bounds(ctx)
	if err != nil {
		return err
	}
	to, err := c.reach(ctx, c.kept.Rest, b.Head)
	if err == nil {
		err = c.trim(ctx, to)
	}
	if f := c.floors.Load(); err == nil && (f == nil || f.Past != nil) { // packs of a longer retention
		if err = Forget(ctx, c.driver, c.rest()); err == nil {
			_, err = c.know(ctx, c.driver.Floors)
		}
	}
	return err
}

// The trimmer rests this many times as long as it worked: most of the database's time
// is for writers where they wait for it, half of it where they do not.
const (
	restWaited = 4
	restBeside = 1
)

func (s *Store) trim(ctx context.Context, to int64) error {
	return Trim(ctx, s.driver, to, s.rest(), func(rows int) {
		raise(&s.floor, to)
		s.cfg.Observer.Trimmed(to, rows)
	})
}

// A trimming transaction takes about as long as trimTime, so that a writer who
// waits for it hardly notices: it may have as many rows as the last ones allowed.
// Where writers do not wait, a longer one spares commits. On a machine that is slow
// for a while, it still keeps up with the writers.
const (
	trimTime            = 3 * time.Millisecond
	trimTimeBeside      = 30 * time.Millisecond
	leastTrim, mostTrim = 100, 1000
	longestRest         = 100 * time.Millisecond
)

// Trim compacts a database up to a revision, in short transactions. After each it calls trimmed with the number of
// rows, and pauses rest times as long as the transaction took, within limits. It may be cancelled and started
// again. Errors: those of Driver.Trim.
func Trim(ctx context.Context, d Driver, to int64, rest int, trimmed func(rows int)) error {
	return inPieces(ctx, d, rest, leastTrim, func(limit int) (bool, time.Duration, error) {
		n, err := d.Trim(ctx, to, limit)
		if err != nil {
			return false, 0, err
		}
		trimmed(n)
		return n >= limit, 0, nil
	})
}

const expirePage = 500

// expire deletes expired rows, as ordinary deletes that watchers see.
func (s *Store) expire(ctx context.Context) {
	clock := &expiryClock{wall: s.cfg.Clock, elapsed: s.cfg.Elapsed}
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
		writes[i] = &write{txn: Txn{Ops: []Op{op}, Lead: Leading(ctx)}, size: len(op.Value), done: make(chan struct{})}
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
