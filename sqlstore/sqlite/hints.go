package sqlite

import (
	"context"
	"fmt"
	"time"
)

// Hints implements sqlstore.Driver. Writes of this process need none: the store knows them. Those of other
// processes show in the writer connection's data_version, which its own commits do not change. It is not
// polled while the writer is busy: the batch in progress will report the newest revision. While no other
// process has the file open, polling is rare.
func (d *Driver) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	d.loops.Add(1)
	go func() {
		defer d.loops.Done()
		defer close(hints)
		next := time.NewTimer(d.cfg.PollInterval)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.closing:
				return
			case <-next.C:
			}
			d.lock.refresh()
			d.reclaim()
			if d.changed() {
				select {
				case hints <- struct{}{}:
				default:
				}
			}
			next.Reset(d.untilNext())
		}
	}()
	return hints
}

// aloneInterval is the interval at which a lone process checks for others, and so bounds how late
// it notices the first write of another.
const aloneInterval = 500 * time.Millisecond

// untilNext returns the pause before the next check.
func (d *Driver) untilNext() time.Duration {
	if d.lock.exclusive() != 0 && !d.spare.Load() {
		return max(d.cfg.PollInterval, aloneInterval)
	}
	return d.cfg.PollInterval
}

// changed reports whether another connection has committed since the last call. An
// error counts as a change: the reader that looks will meet it again.
func (d *Driver) changed() bool {
	if !d.mu.TryLock() {
		return false
	}
	defer d.mu.Unlock()
	if d.writer == nil {
		return false
	}
	version, err := d.writer.number("PRAGMA data_version")
	if err == nil && version == d.version {
		return false
	}
	d.version = version
	return true
}

// lookAgain is no data_version: changed returns true when it is called next.
const lookAgain = -1

// Later writes reuse freed pages, which steady load with steady retention needs. Beyond a quarter of the
// file, and 16 MiB, they are returned to the file system: some at each poll without a write since the
// previous one, and rarely while writes never pause. Compaction comes first.
const (
	reclaimAbove = 16 << 20
	reclaimSlice = 64 // pages
	reclaimRest  = time.Second
)

func (d *Driver) reclaim() {
	if !d.spare.Load() {
		return
	}
	now := time.Since(d.began)
	busy := d.written.Swap(false)
	if now-time.Duration(d.trimmed.Load()) < reclaimRest || busy && now-d.reclaimed < reclaimRest || !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	d.reclaimed = now
	if d.writer == nil || d.doubted() != nil {
		return
	}
	free, err := d.writer.number("PRAGMA freelist_count")
	if err != nil {
		return // the next Trim tries again
	}
	pages, err := d.writer.number("PRAGMA page_count")
	if err != nil {
		return
	}
	if free*pageSize < reclaimAbove || free < pages/4 {
		d.spare.Store(false)
		return
	}
	if err := d.writer.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", reclaimSlice)); err != nil {
		d.spare.Store(false) // best effort: the next Trim tries again
	}
}
