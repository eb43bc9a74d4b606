package sqlite

import (
	"context"
	"time"
)

// Hints implements sqlstore.Driver. Writes of this process need none: the store
// has them. Those of others show in the writer connection's data_version, which
// its own commits do not change. While the writer is busy a look is left out:
// the batch under way will tell the store how far the log has come.
func (d *Driver) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	d.loops.Add(1)
	go func() {
		defer d.loops.Done()
		defer close(hints)
		tick := time.NewTicker(d.cfg.PollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.closing:
				return
			case <-tick.C:
			}
			d.lock.refresh()
			if d.changed() {
				select {
				case hints <- struct{}{}:
				default:
				}
			}
		}
	}()
	return hints
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
