package sqlstore

import (
	"context"
	"time"
)

// horizons are the horizons of all retentions, of which several resources may share one.
type horizons map[time.Duration]*horizon

// reach returns the revision up to which history that is kept for d may be deleted.
func (c *compaction) reach(ctx context.Context, d time.Duration, head int64) (int64, error) {
	wall, elapsed := c.cfg.Clock(), c.cfg.Elapsed() // in this order: time between them lets history live longer
	if c.horizons[d] == nil {
		h := &horizon{retention: d, wall: wall, now: wall, start: elapsed, head: head}
		if err := c.limitAge(ctx, h, elapsed); err != nil {
			return 0, err
		}
		c.horizons[d] = h
	}
	h := c.horizons[d]
	old, newest, err := c.driver.Aged(ctx, h.newest, h.before(elapsed), h.wall)
	if err != nil {
		return 0, err
	}
	h.newest = newest
	return h.reach(elapsed, head, old), nil
}

// limitAge makes h measure ages up to the newest write before this server started, and by how long it has run since. The time
// between the two does not count: either no server ran, or the clock is ahead.
func (c *compaction) limitAge(ctx context.Context, h *horizon, elapsed time.Duration) error {
	if c.start.revision == 0 {
		return nil
	}
	at, ok, err := c.driver.Since(ctx, c.start.revision)
	if ok {
		h.limit(at.Add(elapsed - c.start.elapsed))
	}
	return err
}

// floorsNow returns the present floors of the retention.
func (c *compaction) floorsNow(ctx context.Context) (to Floors, err error) {
	b, err := c.Bounds(ctx)
	if err != nil {
		return to, err
	}
	log := c.kept.log(c.cfg.LogRetention)
	if to.Log, err = c.reach(ctx, log, b.Head); err != nil {
		return to, err
	}
	to.Past = make(map[string]int64)
	if to.Past[""], err = c.reach(ctx, c.kept.Default, b.Head); err != nil {
		return to, err
	}
	for name, d := range c.kept.ByResource {
		if to.Past[name], err = c.reach(ctx, max(d, log), b.Head); err != nil {
			return to, err
		}
	}
	return to, nil
}

// pack raises the floors, packs rows that the log does not need any more, and deletes packs below their
// floors.
func (c *compaction) pack(ctx context.Context) error {
	to, err := c.floorsNow(ctx)
	if err != nil {
		return err
	}
	for more := true; more && ctx.Err() == nil; {
		now, err := c.updateFloors(ctx, func(ctx context.Context) (Floors, error) { return c.driver.Retain(ctx, to) })
		if err != nil {
			return err
		}
		more = now.Log < to.Log
	}
	if err := Pack(ctx, c.driver, c.rest(), c.packed); err != nil {
		return err
	}
	return Forget(ctx, c.driver, c.rest())
}

func (s *Store) packed(p Packed) {
	s.cfg.Observer.Trimmed(s.floor.Load(), p.Deleted)
	s.cfg.Observer.Packed(p.Rows, p.Bytes, p.Stored)
}

func (s *Store) rest() int {
	if s.driver.ConcurrentTrim() {
		return restBeside
	}
	return restWaited
}

// Forget deletes packs below their floors, with the pauses of Pack.
func Forget(ctx context.Context, d Driver, rest int) error {
	return inPieces(ctx, d, rest, leastForget, func(limit int) (bool, time.Duration, error) {
		n, err := d.Forget(ctx, limit)
		return n >= limit, 0, err
	})
}

// Pack packs all rows that ended at or below the floor of the log, in short transactions. After each it calls
// packed, and pauses rest times as long as the transaction took, within limits. It may be cancelled and started
// again. Errors: those of Driver.Pack.
func Pack(ctx context.Context, d Driver, rest int, packed func(Packed)) error {
	var from Cursor
	return inPieces(ctx, d, rest, leastPack, func(limit int) (bool, time.Duration, error) {
		done, err := d.Pack(ctx, from, limit)
		if err != nil {
			return false, 0, err
		}
		packed(done)
		from = done.Next
		return !done.Done, done.WritersBlocked, nil
	})
}

// leastPack is about the number of rows in a full pack: smaller steps would rewrite the last pack of a key
// for every few rows, and where a commit alone takes longer than writers should wait, packing would not keep
// up with the writers.
const leastPack, leastForget = 100, 10

// PackedFor bounds the bytes, of rows read and of packs written, of one call of Driver.Pack, for each row
// of its limit. It stops after the key that exceeds this.
const PackedFor = 2 << 10

// inPieces calls do until nothing is left, each time with as many rows as fit into the time that writers may wait,
// and pauses in between. do returns how long writers waited, if that is less than it took.
func inPieces(ctx context.Context, d Driver, rest, least int, do func(limit int) (more bool, held time.Duration, err error)) error {
	aim := trimTime
	if d.ConcurrentTrim() {
		aim = trimTimeBeside
	}
	for limit := least; ; {
		start := time.Now()
		more, held, err := do(limit)
		if err != nil || !more {
			return err
		}
		took := time.Since(start)
		if held == 0 {
			held = took
		}
		// A packer that ran concurrently with writers then leaves the processor to them for as long.
		if !Sleep(ctx, min(max(time.Duration(rest)*held, restBeside*took), longestRest)) {
			return ctx.Err()
		}
		fits := int(int64(limit) * int64(aim) / max(1, int64(held)))
		limit = min(max((limit+fits)/2, least), mostTrim, 2*limit)
	}
}

// updateFloors stores the floors that ask returns. Calls of ask do not overlap, so that an outdated answer does not
// replace a newer one.
func (s *Store) updateFloors(ctx context.Context, ask func(context.Context) (Floors, error)) (Floors, error) {
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return Floors{}, ctx.Err()
	}
	defer func() { <-s.asking }()
	f, err := ask(ctx)
	if err == nil {
		s.floors.Store(&f)
		raise(&s.floor, f.Log)
	}
	return f, err
}

// followFloors follows floors that other servers raise.
func (s *Store) followFloors(ctx context.Context) {
	for {
		if _, err := s.updateFloors(ctx, s.driver.Floors); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug("cannot read how far history reaches back", "error", err)
		}
		if !s.cfg.Sleep(ctx, s.cfg.CompactEvery) {
			return
		}
	}
}

// AskPastFloor is PastFloor as the database has it now: another server may have raised it.
func (s *Store) AskPastFloor(ctx context.Context, resource string) (int64, error) {
	f, err := s.updateFloors(ctx, s.driver.Floors)
	return f.Of(resource), err
}

// CheckSkipped returns CompactedError for a revision that was left out, as known here.
func (s *Store) CheckSkipped(revision int64) error {
	if f := s.floors.Load(); f != nil {
		return f.CheckSkipped(revision)
	}
	return nil
}

// PastFloor returns the oldest revision at which snapshots of a resource ("deployments.apps"), or
// of all for "", can be read, as known here.
func (s *Store) PastFloor(resource string) int64 {
	f := s.floors.Load()
	if f == nil || f.Past == nil {
		return s.floor.Load()
	}
	return f.Of(resource)
}
