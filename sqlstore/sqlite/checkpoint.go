package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// SQLite copies the write-ahead log into the file at the end of the commit that makes it too long, and that
// writer waits for it. Here a separate connection does it concurrently with the writers, in pieces so small
// that they hardly delay a commit. The log begins anew only with a commit that finds all of it copied, and
// all of the file synced: when it has become long, its last few pages are copied while no writer adds more.
// If that never happens, SQLite does it at logLimit.
const (
	copyEvery = 30 * time.Millisecond
	copyFrom  = 1000  // pages: a page that is written repeatedly before is copied once
	emptyFrom = 4000  // pages
	lastPages = 50    // most that writers wait for
	maxRounds = 8     // of copying while writers add as much as is copied
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
	defer func() {
		if d.doubted() == nil {
			_ = c.close() // it holds nothing that could be lost
		}
	}()
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

// checkpoint is best effort: the next one copies what it does not. Nothing is trimmed in the meantime:
// trimming writes as fast as it may, and so adapts to the speed of the disk.
func (d *Driver) checkpoint(c *conn) {
	if d.doubted() != nil {
		return
	}
	_, left, err := logged(c)
	if err != nil || left < copyFrom {
		return
	}
	var pages int64 // in the log
	d.trimming.Lock()
	defer d.trimming.Unlock()
	for round := 0; round < maxRounds && (round == 0 || left > lastPages); round++ {
		if err := d.copyLog(c); err != nil {
			return
		}
		if pages, left, err = logged(c); err != nil || pages < emptyFrom {
			return
		}
	}
	_, unlock, err := d.lockWriter()
	if err != nil {
		return
	}
	defer unlock()
	_, _, err = walCheckpoint(c, "PASSIVE")
	d.checkpointed(err)
}

// copyLog copies the present log. SQLite syncs the file only at the end of the log, when writers wait for it:
// by then little should be left to sync.
func (d *Driver) copyLog(c *conn) error {
	if _, _, err := walCheckpoint(c, "PASSIVE"); err != nil {
		d.checkpointed(err)
		return err
	}
	if d.cfg.Unsynced {
		return nil
	}
	return d.syncFile()
}

// logged returns how many pages the log has, and how many of them are not copied yet.
func logged(c *conn) (pages, left int64, err error) {
	pages, copied, err := walCheckpoint(c, "NOOP")
	return pages, pages - copied, err
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
