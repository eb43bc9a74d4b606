package postgres

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// Load implements sqlstore.Admin with COPY, under the writers' lock.
func (d *Driver) Load(ctx context.Context, content sqlstore.Content) error {
	err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		var head int64
		if err := tx.QueryRow(ctx, qLock).Scan(&head); err != nil {
			return err
		}
		if head != 0 {
			return sqlstore.ErrNotEmpty
		}
		var broken error // what the rows ended with
		next, stop := iter.Pull2(content.Rows)
		defer stop()
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"kv"}, loadColumns, pgx.CopyFromFunc(func() ([]any, error) {
			row, err, ok := next()
			if err != nil || !ok {
				broken = err
				return nil, err
			}
			return loadRow(row), nil
		})); broken != nil {
			return broken // and not what COPY makes of it
		} else if err != nil {
			return err
		}
		if content.ClusterID != "" {
			if _, err := tx.Exec(ctx, qSetClusterID, content.ClusterID); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, qRaiseFloor, content.Bounds.Floor); err != nil {
			return err
		}
		if content.Past != nil {
			seconds, revisions, err := readSeconds(ctx, tx, 0, content.Bounds.Floor)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, qMark, seconds, revisions); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, qSetFloors, content.Floors().Text()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, qSetRevision, content.Bounds.Head)
		return err
	})
	if err != nil {
		return fmt.Errorf("loading: %w", d.translate(ctx, err))
	}
	return nil
}

// loadColumns is columns, as COPY takes it.
var loadColumns = []string{"revision", "resource", "namespace", "name", "created_revision", "superseded_revision", "deleted", "value", "expires_at", "written_at"}

func loadRow(row sqlstore.Row) []any {
	var superseded *int64
	if row.Superseded != 0 {
		superseded = &row.Superseded
	}
	var expires *time.Time
	if !row.ExpiresAt.IsZero() {
		expires = &row.ExpiresAt
	}
	value := row.Value
	if value == nil {
		value = []byte{}
	}
	return []any{row.Revision, row.Key.Resource, row.Key.Namespace, row.Key.Name, row.Created, superseded, row.Deleted, value, expires, row.WrittenAt}
}
