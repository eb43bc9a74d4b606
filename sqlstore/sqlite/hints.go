package sqlite

import (
	"context"
	"fmt"
	"time"
)

// Hints implements sqlstore.Driver. Writes of this process need none: the store
// has them. Those of others show in the writer connection's data_version, which
// its own commits do not change. While the writer is busy a look is left out:
// the batch under way will tell the store how far the log has come. While no other
// process has the file there is little to look for: then looks are rare.
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

// aloneInterval is how often to look whether another process has come, whose first write
// is then heard of so late.
const aloneInterval = 500 * time.Millisecond

// untilNext is how long to wait before the next look.
func (d *Driver) untilNext() time.Duration {
	if d.lock.exclusive() != 0 && !d.spare.Load() {
		return max(d.cfg.PollInterval, aloneInterval)
	}
	return d.cfg.PollInterval
}

// changed says that another connection has committed since the last call. An
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

// Freed pages are used again by later writes, and steady load with steady
// retention needs that. Beyond a quarter of the file, and 16 MiB, they are given
// back to the file system: a slice at each look at which nobody has written since the
// last one, and rarely while somebody always does. Compaction comes first.
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
