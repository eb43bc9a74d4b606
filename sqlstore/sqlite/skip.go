package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// SkipRevisions implements sqlstore.Admin.
func (d *Driver) SkipRevisions(ctx context.Context, count int64) (from, to int64, err error) {
	_, err = d.writing(ctx, func(w *conn) error {
		b, err := bounds(w)
		if err != nil {
			return err
		}
		if from = b.Head; count <= 0 {
			var v [1]driver.Value
			if _, err := w.one(v[:], qNewestAt); err != nil {
				return err
			}
			since := time.Duration(0)
			if written, ok := v[0].(int64); ok { // else the database is empty
				since = time.Since(time.UnixMicro(written))
			}
			count = sqlstore.RevisionGap(since)
		} else if err := sqlstore.CheckHeadroom(from + count); err != nil {
			return err
		}
		to = from + count
		return skip(ctx, w, to)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("skipping revisions: %w", err)
	}
	return from, to, nil
}
