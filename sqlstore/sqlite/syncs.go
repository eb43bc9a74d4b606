package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
)

// Consequences of a failed sync. The system may mark pages as written that the disk does not have, and it
// reports that once: a later sync succeeds without them.
//
// In the write-ahead log: everything synced before stays; relaxed commits and pieces of large values may be lost, and all
// after them. They can still be read, so all of the log is copied into the file (mend).
//
// In the file: copied data may be lost, and SQLite does not copy it again. The log has all of it until it
// begins anew. So nothing is written any more, and the log is left as it is for the next process, which reads
// it from its beginning.

// syncLog syncs all commits to the disk. The log stays open, because the system reports pages that it could not
// write to each file that was open at that time, but not always to one opened later.
func (d *Driver) syncLog() error {
	d.logMu.Lock()
	defer d.logMu.Unlock()
	if err := d.openLog(); err != nil {
		return err
	}
	return d.logFile.Sync()
}

// syncPieces syncs the log after the transaction of a piece, when writers no longer wait for it.
func (d *Driver) syncPieces() error {
	if d.cfg.Unsynced {
		return nil
	}
	err := d.syncWAL()
	if err != nil {
		d.mu.Lock()
		d.unsynced = err
		d.mu.Unlock()
		d.relaxed.Fail(err)
	}
	return err
}

// openLog opens the log for syncLog, of whose mutex its caller is the holder. SQLite has no locks on it that closing would end.
func (d *Driver) openLog() (err error) {
	if d.logFile == nil {
		d.logFile, err = os.OpenFile(d.path+"-wal", os.O_RDWR, 0)
	}
	return err
}

// syncFile syncs the file after data was copied into it.
func (d *Driver) syncFile() error {
	err := d.syncDB()
	d.doubt(err)
	return err
}

// doubt records an error after which copied data may be missing in the file.
func (d *Driver) doubt(err error) {
	if err != nil {
		err = fmt.Errorf("%w: a sync of %s failed; it is read anew when the server starts again: %w", sqlstore.ErrGone, d.path, err)
		d.doubtful.CompareAndSwap(nil, &err)
	}
}

// doubted returns why nothing may be written any more.
func (d *Driver) doubted() error {
	if err := d.doubtful.Load(); err != nil {
		return *err
	}
	return nil
}

// mend is called before every write, and not concurrently with one. After a failed sync of the log, by
// whichever commit, nothing is written until all of the log is in the file, and the log is empty. If no
// commit is relaxed, and no large value is stored, all commits before the failed one were synced, and nothing needs to be done.
func (d *Driver) mend(w *conn) error {
	if err := d.doubted(); err != nil {
		return err
	}
	failed := d.relaxed.Failed()
	if failed == nil {
		failed = d.unsynced
	}
	if failed == nil {
		return nil
	}
	if d.relaxed == nil {
		var v [2]driver.Value
		if _, err := w.one(v[:], qReserved); err != nil {
			return fmt.Errorf("reading the state of relaxed commits: %w", err)
		}
		large, err := w.number(qAnyLarge)
		if err != nil {
			return fmt.Errorf("looking for large values: %w", err)
		}
		if v[0] == nil && large == 0 { // nor are those of other processes; the deletion of the last large value was synced
			d.unsynced = nil
			return nil
		}
	}
	err := d.emptyLog(w)
	if err == nil {
		err = d.syncFile()
	}
	if err != nil {
		return fmt.Errorf("%w: the write-ahead log could not be synced (%w), nor copied into the file: %w", sqlstore.ErrUnavailable, failed, err)
	}
	d.unsynced = nil
	d.relaxed.Mended()
	return nil
}

// emptyLog has all of the write-ahead log copied into the file, which is synced, and empties it.
func (d *Driver) emptyLog(w *conn) error {
	var v [3]driver.Value
	_, err := w.one(v[:], "PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && v[0] != int64(0) {
		err = errors.New("readers are in the way")
	}
	d.checkpointed(err)
	return err
}

// checkpointed examines the result of a checkpoint, which syncs the log first and then the file, and does not
// report which of them failed.
func (d *Driver) checkpointed(err error) {
	if isCode(err, sqlite3.SQLITE_IOERR_FSYNC) {
		d.doubt(err)
	}
}

// settle flushes the writes of a killed process to the disk, so that the server shows nothing that a power
// loss could revert. A sync of the log may have failed, so that another one would find nothing to do; data
// that was copied into the file needs none. If this process may not copy the log, or others read from it, it
// can only sync.
func (d *Driver) settle() error {
	if d.cfg.Unsynced {
		return nil
	}
	if !d.cfg.NoCheckpoint && d.emptyLog(d.writer) == nil {
		return nil
	}
	if err := d.syncLog(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("syncing what a former process wrote: %w", err)
	}
	return nil
}
