package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// trimBytes bounds the bytes of values that one transaction deletes: SQLite visits each of their pages, and writers wait.
const trimBytes = 2 << 20

// Trim implements sqlstore.Driver. The first transaction raises the floor and deletes rows: no reader misses rows
// above the floor. Rows with more than trimBytes take several, with rests like those of the sweeper.
func (d *Driver) Trim(ctx context.Context, to int64, limit int) (deleted int, err error) {
	for more := true; more && err == nil; {
		deleted, more, err = d.trimSome(ctx, to, limit, deleted)
	}
	if err != nil {
		return 0, fmt.Errorf("trimming to %d: %w", to, err)
	}
	return deleted, nil
}

// trimSome is one transaction of Trim, of whose rows some are deleted.
func (d *Driver) trimSome(ctx context.Context, to int64, limit, deleted int) (_ int, more bool, err error) {
	some, err := d.trimmable(ctx, to, limit-deleted)
	if err != nil {
		return deleted, false, err
	}
	var n, large int64
	held, err := d.writing(ctx, func(w *conn) (err error) {
		n, large, err = trim(w, to, some)
		return err
	})
	if err != nil {
		return deleted, false, err
	}
	if n > 0 {
		d.trimmed.Store(int64(time.Since(d.began)))
		d.spare.Store(true)
	}
	if large > 0 {
		d.staging.wakeUp()
	}
	deleted += int(n)
	if int(n) < some || deleted >= limit {
		return deleted, false, nil
	}
	return deleted, true, d.rest(ctx, held)
}

// trimmable returns how many rows, up to limit, one transaction of Trim may delete.
func (d *Driver) trimmable(ctx context.Context, to int64, limit int) (rows int, err error) {
	if limit <= 0 {
		return limit, nil
	}
	bytes := int64(0)
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		return c.query(context.Background(), func(v []driver.Value) error {
			size, _ := v[0].(int64)
			if rows++; bytes+size > trimBytes {
				return errEnough
			}
			bytes += size
			return nil
		}, qTrimmable, max(b.Floor, min(to, b.Head)), int64(limit))
	})
	if errors.Is(err, errEnough) {
		return rows, nil
	}
	return limit, err // there are no more, or as many
}

// ConcurrentTrim implements sqlstore.Driver: the file has one writer at a time.
func (d *Driver) ConcurrentTrim() bool { return false }

// trim deletes rows, and returns how many, and how many of them had large values.
func trim(w *conn, to int64, limit int) (n, large int64, err error) {
	b, err := bounds(w)
	if err != nil {
		return 0, 0, err
	}
	f, err := floors(w, b)
	if err != nil {
		return 0, 0, err
	}
	// Rows below a floor that packs go beyond wait to be packed; they go once the floor rises, which ends those.
	if to = min(to, b.Head); to <= b.Floor && f.Past != nil {
		return 0, 0, nil
	}
	if to > b.Floor {
		if err := w.exec(qRaiseFloor, to); err != nil {
			return 0, 0, err
		}
		// The row may go with those that it ended: the mark says since when it held.
		if err := w.exec(qMarkRow, to); err != nil {
			return 0, 0, err
		}
		if err := w.exec(qForgetMarks, to, int64(marksAtOnce)); err != nil {
			return 0, 0, err
		}
		if f.Past != nil { // all packs are below the floor now
			if err := w.exec(qCompatible, int64(sqlstore.PackedSchema), int64(sqlstore.UnpackedSchema)); err != nil {
				return 0, 0, err
			}
		}
		b.Floor = to
	}
	if limit <= 0 {
		return 0, 0, nil
	}
	some, err := w.number(qAnyLarge)
	if err == nil && some != 0 {
		large, err = w.execCount(qTrimLarge, b.Floor, int64(limit))
	}
	if err == nil {
		n, err = w.execCount(qTrim, b.Floor, int64(limit))
	}
	return n, large, err
}

// Stats implements sqlstore.Driver.
func (d *Driver) Stats(ctx context.Context) (s sqlstore.Stats, err error) {
	s.Driver = "sqlite"
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		s.Bounds = b
		return readStats(ctx, c, &s)
	})
	if err != nil {
		return s, fmt.Errorf("reading statistics: %w", err)
	}
	version, _, err := d.Schema()
	if err != nil {
		return s, fmt.Errorf("reading statistics: %w", err)
	}
	s.SchemaVersion = version
	return s, nil
}

// Schema returns the version of the schema that the file has; dirty means that a
// migration was cut short.
func (d *Driver) Schema() (version uint, dirty bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writer == nil {
		return 0, false, sqlstore.ErrClosed
	}
	return d.schema()
}

func readStats(ctx context.Context, c *conn, s *sqlstore.Stats) error {
	var v [3]driver.Value
	if _, err := c.one(v[:1], `SELECT sqlite_version()`); err != nil {
		return err
	}
	s.ServerVersion = text(v[0])
	if _, err := c.one(v[:1], qClusterID); err != nil {
		return err
	}
	s.ClusterID = text(v[0])
	if _, err := c.one(v[:], qSizes); err != nil {
		return err
	}
	s.LiveRows, _ = v[0].(int64)
	s.HistoryRows, _ = v[1].(int64)
	if oldest, ok := v[2].(int64); ok {
		s.OldestWrittenAt = fromMicros(oldest)
	}
	if _, err := c.one(v[:], qPacks); err != nil {
		return err
	}
	s.Packs, _ = v[0].(int64)
	s.PackedRows, _ = v[1].(int64)
	if oldest, ok := v[2].(int64); ok && (s.OldestWrittenAt.IsZero() || fromMicros(oldest).Before(s.OldestWrittenAt)) {
		s.OldestWrittenAt = fromMicros(oldest)
	}
	pages, err := c.number(`PRAGMA page_count`)
	if err != nil {
		return err
	}
	size, err := c.number(`PRAGMA page_size`)
	if err != nil {
		return err
	}
	s.Bytes = pages * size
	return c.query(ctx, func(v []driver.Value) error {
		objects, _ := v[1].(int64)
		bytes, _ := v[2].(int64)
		s.Resources = append(s.Resources, sqlstore.ResourceStats{Resource: text(v[0]), Objects: objects, Bytes: bytes})
		return nil
	}, qCounts)
}
