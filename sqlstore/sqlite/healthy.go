package sqlite

import (
	"fmt"
	"os"

	"github.com/rowlock/rowlock/sqlstore"
)

// Healthy implements sqlstore.Writer. Writes through open files to a database that was deleted, renamed or
// replaced would be lost with the process, and a process that does not find this one's lock file would lead
// as well, so the driver calls it before each commit, and again before a commit counts. It costs three calls
// of stat. It also fails if data that was copied into the file may be missing there.
func (d *Driver) Healthy() error {
	if err := d.doubted(); err != nil {
		return err
	}
	if err := same(d.path, d.inode); err != nil {
		return err
	}
	if err := d.lock.inPlace(); err != nil {
		return err
	}
	log := d.path + "-wal"
	if known := d.log.Load(); known != nil {
		return same(log, *known)
	}
	if info, err := os.Stat(log); err == nil { // SQLite makes it when it needs it
		d.log.CompareAndSwap(nil, &info)
	}
	return nil
}

func same(path string, opened os.FileInfo) error {
	now, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", sqlstore.ErrGone, err)
	}
	if !os.SameFile(now, opened) {
		return fmt.Errorf("%w: %s is another file than was opened", sqlstore.ErrGone, path)
	}
	return nil
}
