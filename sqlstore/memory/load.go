package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

var _ sqlstore.Driver = (*Driver)(nil)

// ReadAll implements sqlstore.Reader.
func (d *Driver) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	return sqlstore.ReadPages(ctx, d, revision, take)
}

// Load implements sqlstore.Admin.
func (d *Driver) Load(ctx context.Context, from sqlstore.Content) error {
	err := d.change(ctx, func(next *content) error {
		if next.bounds.Head != 0 {
			return sqlstore.ErrNotEmpty
		}
		if err := sqlstore.CheckHeadroom(from.Bounds.Head); err != nil {
			return err
		}
		next.bounds, next.floors = from.Bounds, from.Floors()
		next.trimmed = next.floors.Lowest()
		if from.ClusterID != "" {
			next.cluster = from.ClusterID
		}
		for row, err := range from.Rows {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && d.db.cfg.MaxBytes > 0 && next.bytes+weight(&row) > d.db.cfg.MaxBytes {
				err = sqlstore.ErrFull
			}
			if err != nil {
				return err
			}
			next.keep(&sqlstore.Row{
				Key: next.ownKey(row.Key), Revision: row.Revision, Created: row.Created, Superseded: row.Superseded, Deleted: row.Deleted,
				Value: bytes.Clone(row.Value), ExpiresAt: micros(row.ExpiresAt), WrittenAt: micros(row.WrittenAt),
			})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	return nil
}
