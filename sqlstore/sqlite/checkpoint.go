package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// SQLite copies the write-ahead log into the file at the end of the commit that
// made it long, and that writer waits for it. Here a connection of its own does
// it beside the writers. The log begins anew only with a commit that finds all of
// it copied, so when it has become long its last pages are copied while no writer
// adds more. Should none of that come to pass, SQLite does it at logLimit.
const (
	copyEvery = 50 * time.Millisecond
	copyFrom  = 1000  // pages
	emptyFrom = 4000  // pages
	logLimit  = 16000 // pages
)

// wroteLog wakes the checkpointer.
func (d *Driver) wroteLog() {
	select {
	case d.wrote <- struct{}{}:
	default:
	}
}

// checkpoints copies the log after writes, until the driver closes.
func (d *Driver) checkpoints(c *conn) {
	defer d.loops.Done()
	defer c.close() // it holds nothing that could be lost
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-d.wrote:
		case <-d.closing:
			return
		}
		pause.Reset(copyEvery)
		select {
		case <-pause.C:
		case <-d.closing:
			return
		}
		d.checkpoint(c)
	}
}

// checkpoint is best effort: what it does not copy, a later one does.
func (d *Driver) checkpoint(c *conn) {
	pages, copied, err := walCheckpoint(c, "NOOP")
	if err != nil || pages-copied < copyFrom {
		return
	}
	pages, _, err = walCheckpoint(c, "PASSIVE")
	if err != nil || pages < emptyFrom {
		return
	}
	_, unlock, err := d.lockWriter()
	if err != nil {
		return
	}
	defer unlock()
	_, _, _ = walCheckpoint(c, "PASSIVE")
}

func walCheckpoint(c *conn, mode string) (pages, copied int64, err error) {
	var v [3]driver.Value
	if _, err := c.one(v[:], "PRAGMA wal_checkpoint("+mode+")"); err != nil {
		return 0, 0, err
	}
	pages, ok1 := v[1].(int64)
	copied, ok2 := v[2].(int64)
	if !ok1 || !ok2 {
		return 0, 0, fmt.Errorf("wal_checkpoint(%s) gave %v", mode, v)
	}
	return pages, copied, nil
}
