package sqlstore

import (
	"context"
	"time"
)

// compact enforces the retention while this server leads.
func (s *Store) compact(ctx context.Context) {
	c := &compaction{Store: s, keeper: retentionLeader{Store: s}, horizons: make(horizons)}
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
	keeper   retentionLeader
	kept     Retention // in this round
	horizons horizons
	lastPack *time.Duration // when, by Elapsed
}

// once trims if the log has the whole history. Otherwise it packs, once in the period of the log, so that the
// writes of an object that changes constantly fill its packs.
func (c *compaction) once(ctx context.Context) (err error) {
	if c.kept, err = c.keeper.retention(ctx); err != nil {
		return err
	}
	if c.kept.packs(c.cfg.LogRetention) {
		now := c.cfg.Elapsed()
		if c.lastPack != nil && now-*c.lastPack < c.cfg.PackEvery {
			_, err := c.floorsNow(ctx) // it remembers the head
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
	to, err := c.reach(ctx, c.kept.Default, b.Head)
	if err == nil {
		err = c.trim(ctx, to)
	}
	if f := c.floors.Load(); err == nil && (f == nil || f.Past != nil) { // packs of a longer retention
		if err = Forget(ctx, c.driver, c.rest()); err == nil {
			_, err = c.updateFloors(ctx, c.driver.Floors)
		}
	}
	return err
}

// Pauses between trims, relative to their duration: most of the database's time is for writers if they wait
// for trims, otherwise half of it.
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

// A trimming transaction takes about trimTime, so that a writer hardly notices its wait: its number of rows
// follows from the previous ones. If writers do not wait, longer ones save commits. On a machine that is slow
// for a while, trimming still keeps up with the writers.
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
	writes, bytes := make([]*write, len(rows)), 0
	for i := range rows {
		bytes += len(rows[i].Value)
		op := Op{Verb: Delete, Key: rows[i].Key, Expect: rows[i].Revision, Value: rows[i].Value, AsStored: true, Damaged: rows[i].Damaged != nil}
		writes[i] = &write{txn: Txn{Ops: []Op{op}, Lead: Leading(ctx)}, size: len(op.Value), done: make(chan struct{})}
		s.seal(ctx, writes[i]) // which decrypts a value that is passed as stored
		if err := s.stage(ctx, writes[i]); err != nil {
			return false, err
		}
		s.queue.add(writes[i])
	}
	deleted := 0
	for _, w := range writes {
		select {
		case <-w.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if w.out.Err == nil {
			deleted++
		} else if _, unmet := Unmet(w.out.Err); !unmet { // else renewed or deleted in the meantime
			err = w.out.Err
		}
	}
	s.cfg.Observer.Expired(deleted)
	return err == nil && (len(rows) == expirePage || bytes >= ChangesBytes), err
}
