package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// Load implements sqlstore.Admin.
func (d *Driver) Load(ctx context.Context, content sqlstore.Content) error {
	if err := sqlstore.CheckHeadroom(content.Bounds.Head); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	w, unlock, err := d.lockWriter()
	if err != nil {
		return err
	}
	defer unlock()
	defer func() { // a larger cache does no harm, nor do pages that are written early
		for _, p := range []string{cachePragma, keepPragma} {
			_ = w.pragma(p)
		}
	}()
	// Rows come in no order of keys: the indexes should fit, or each of their pages
	// is written many times.
	const cache = 256 << 20
	for _, p := range []string{fmt.Sprintf("cache_size(-%d)", cache>>10), spillPragma} {
		if err := w.pragma(p); err != nil {
			return fmt.Errorf("loading: %w", err)
		}
	}
	if err := w.exec(qBegin); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	if err = load(ctx, w, content); err == nil {
		if err = d.end(w); err == nil {
			return nil
		}
	}
	if e := w.exec(qRollback); e != nil && !isIdle(e) {
		err = errors.Join(err, e)
	}
	if d.unsynced != nil {
		if e := d.replaceCommit(w); e != nil {
			err = fmt.Errorf("%w: %w; replacing the commit: %w", sqlstore.ErrUncertain, err, e)
		}
	}
	return fmt.Errorf("loading: %w", err)
}

func load(ctx context.Context, w *conn, content sqlstore.Content) error {
	if b, err := bounds(w); err != nil {
		return err
	} else if b.Head != 0 {
		return sqlstore.ErrNotEmpty
	}
	var sums sqlstore.Checksummer
	for row, err := range content.Rows {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = insert(w, row, &sums)
		}
		if err != nil {
			return err
		}
	}
	if content.ClusterID != "" {
		if err := w.exec(qSetClusterID, content.ClusterID); err != nil {
			return err
		}
	}
	if err := w.exec(qRaiseFloor, content.Bounds.Floor); err != nil {
		return err
	}
	if content.Past != nil {
		if err := markLoaded(ctx, w, 0, content.Floors()); err != nil {
			return err
		}
	}
	return record(w, content.Bounds.Head, "loaded")
}

// insert writes a row as it is.
func insert(w *conn, row sqlstore.Row, sums *sqlstore.Checksummer) error {
	var superseded, expires any
	var deleted int64
	if row.Superseded != 0 {
		superseded = row.Superseded
	}
	if !row.ExpiresAt.IsZero() {
		expires = row.ExpiresAt.UnixMicro()
	}
	if row.Deleted {
		deleted = 1
	}
	value := row.Value
	if value == nil {
		value = []byte{}
	}
	sum := sums.Row(&row)
	if row.Damaged != nil { // it stays so
		sum = sqlstore.DamagedChecksum
	}
	var stored any = value
	var err error
	if isLarge(value) {
		stored, err = putLarge(w, row.Revision, row.WrittenAt.UnixMicro(), value)
	}
	if err == nil {
		err = w.exec(qInsert, row.Revision, row.Key.Resource, row.Key.Namespace, row.Key.Name, row.Created, superseded, deleted, stored, expires, row.WrittenAt.UnixMicro(), sum)
	}
	if err != nil {
		return fmt.Errorf("%s at revision %d: %w", row.Key, row.Revision, err)
	}
	return nil
}

// markLoaded stores the floors, and which revisions after one and below that of the log were the last of
// their seconds.
func markLoaded(ctx context.Context, w *conn, after int64, f sqlstore.Floors) error {
	marks, err := readMarks(ctx, w, after, f.Log)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if err := w.exec(qMark, m.second, m.revision); err != nil {
			return err
		}
	}
	return w.exec(qSetFloors, f.Text())
}
