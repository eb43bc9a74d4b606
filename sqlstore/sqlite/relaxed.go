package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rowlock/rowlock/sqlstore"
)

// Relaxed commits are in the write-ahead log like all others, but are acknowledged before it is synced. Every
// sync makes all of them durable, and after a power loss recovery finds the log up to some commit, so no
// durable commit is there without all earlier ones.
//
// The revisions of such commits may be lost after clients have seen them. So the file durably records the
// last such revision ('relaxed' in kv_meta), and the boot of the machine ('boot'): a process that opens it
// after another boot continues with later revisions. A killed process loses nothing, because the system still
// has its writes.

// errReserve: the reserved revisions are used up; the batch must be durable.
var errReserve = errors.New("no revisions are reserved for relaxed commits")

// bootID identifies the boot of this machine; "" if the system does not report it.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// relax relaxes commits of resources. It calls sync until that fails once: a later success proves
// nothing, as the system reports pages that it could not write only once.
func (d *Driver) relax(resources []string, sync func() error) {
	d.relaxed = sqlstore.NewRelaxed(resources, func() error {
		failed := d.relaxed.Failed()
		if failed == nil {
			return sync()
		}
		_, unlock, err := d.lockWriter() // which mends
		if err != nil {
			return failed
		}
		unlock()
		return nil
	})
}

// setRelaxed sets whether commits of the writer from here on leave the write-ahead log to a later sync, which
// brings them to the disk in their order.
func (d *Driver) setRelaxed(relaxed bool) error {
	if d.cfg.Unsynced || d.writer.relaxed == relaxed {
		return nil
	}
	level := d.synchronous()
	if relaxed {
		level = "synchronous(NORMAL)"
	}
	if err := d.writer.pragma(level); err != nil {
		return err
	}
	d.writer.relaxed = relaxed
	return nil
}

// reserve makes a durable commit reserve revisions if few are left, and refuses a relaxed one that would
// exceed them. It returns up to which revision they are reserved once it is committed.
func (d *Driver) reserve(w *conn, revision int64, relaxed bool) (int64, error) {
	switch {
	case d.relaxed == nil:
		return 0, nil
	case relaxed && revision > d.reserved:
		return 0, errReserve
	case relaxed || revision+sqlstore.RelaxedReserve/2 < d.reserved:
		return d.reserved, nil
	}
	if err := w.exec(qBoot, d.boot); err != nil {
		return 0, err
	}
	if err := w.exec(qFence, int64(sqlstore.RelaxedSchema)); err != nil {
		return 0, err
	}
	return revision + sqlstore.RelaxedReserve, w.exec(qReserve, revision+sqlstore.RelaxedReserve)
}

// committed reports commits that became durable, or will soon.
func (d *Driver) committed(ops, reserved int64, relaxed bool) {
	if d.relaxed == nil {
		return
	}
	d.reserved = reserved
	if relaxed {
		d.relaxed.Committed(int(ops))
	} else {
		d.relaxed.Durable()
	}
}

// RelaxedStats implements sqlstore.Writer.
func (d *Driver) RelaxedStats() sqlstore.RelaxedStats { return d.relaxed.Stats() }

// recover skips the revisions that may have been lost with the machine. If only a process ended, it flushes
// the commits of that process to the disk. The caller is the only user of the file, or all other users run in
// the same boot.
func (d *Driver) recover(ctx context.Context) error {
	var v [2]driver.Value
	if _, err := d.writer.one(v[:], qReserved); err != nil {
		return fmt.Errorf("reading the state of relaxed commits: %w", err)
	}
	reserved, ok := v[0].(int64)
	if !ok && d.lock.exclusive() == 0 {
		return nil // others have opened the file and have done this
	}
	if !ok {
		return d.settle()
	}
	if text(v[1]) == d.boot && d.boot != "" {
		return d.settle()
	}
	_, err := d.writing(ctx, func(w *conn) error { return skip(ctx, w, reserved) })
	if err != nil {
		return fmt.Errorf("skipping revisions that may have been lost: %w", err)
	}
	return nil
}

// skip raises revision and floor of the log to reserved: clients that have seen a lost
// revision must list again. Snapshots of the past stay, as far as they are kept.
func skip(ctx context.Context, w *conn, reserved int64) error {
	b, err := bounds(w)
	if err != nil {
		return err
	}
	f, err := floors(w, b)
	if err != nil {
		return err
	}
	if reserved > b.Head {
		if err := w.exec(qSetRevision, reserved); err != nil {
			return err
		}
		if err := w.exec(qRaiseFloor, reserved); err != nil {
			return err
		}
		if f.Past != nil {
			if err := markLoaded(ctx, w, b.Floor, f.Skip(b.Head, reserved)); err != nil {
				return err
			}
		}
	}
	return release(w, reserved, f)
}

// release takes back the reserved revisions, unless more were reserved since, and admits older binaries
// again that can read packed rows.
func release(w *conn, reserved int64, f sqlstore.Floors) error {
	if err := w.exec(qUnreserve, reserved); err != nil {
		return err
	}
	var v [2]driver.Value
	if _, err := w.one(v[:], qReserved); err != nil || v[0] != nil {
		return err
	}
	oldest := int64(sqlstore.UnpackedSchema)
	if f.Past != nil {
		oldest = sqlstore.PackedSchema
	}
	return w.exec(qCompatible, int64(sqlstore.RelaxedSchema), oldest)
}

// unreserve ends relaxing regularly: everything is on the disk, so no revision needs to be skipped.
// Reservations that another process has made since stay.
func (d *Driver) unreserve() error {
	if d.relaxed == nil || d.reserved == 0 {
		return nil
	}
	if err := d.mend(d.writer); err != nil {
		return err
	}
	if err := d.setRelaxed(false); err != nil {
		return err
	}
	if err := d.syncLog(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("syncing the write-ahead log: %w", err)
	}
	if d.lock.refresh(); d.lock.exclusive() == 0 {
		return nil
	}
	b, err := bounds(d.writer)
	if err != nil {
		return err
	}
	f, err := floors(d.writer, b)
	if err != nil {
		return err
	}
	return release(d.writer, d.reserved, f)
}
