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
	if err := sqlstore.CheckHeadroom(content.Bounds.Head); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	var pid uint32 // of the session that has been sent a COMMIT
	err := d.confirm(ctx, func(tx pgx.Tx) error {
		err := load(ctx, tx, content)
		if err == nil {
			pid = tx.Conn().PgConn().PID()
		}
		return err
	})
	if err != nil && pid != 0 && !refused(err) {
		err = d.resolveLoad(context.WithoutCancel(ctx), pid, content.Bounds.Head, err)
	}
	if err != nil {
		return fmt.Errorf("loading: %w", d.translate(ctx, err))
	}
	return nil
}

// resolveLoadFor is how long a load whose COMMIT was not answered looks for its outcome.
const resolveLoadFor = 30 * time.Second

// resolveLoad finds the outcome of a load whose COMMIT was not answered, and returns nil if the rows were loaded, or cause.
// Taking the writers' lock waits for the end of the transaction, see Resolve.
func (d *Driver) resolveLoad(ctx context.Context, pid uint32, head int64, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, resolveLoadFor)
	defer cancel()
	for {
		var found int64
		_, err := d.pool.Exec(ctx, qTerminate, pid, d.session)
		if err == nil || refused(err) {
			err = d.confirm(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, qLock).Scan(&found) })
		}
		switch {
		case err == nil && found == head:
			return nil
		case err == nil && found == 0:
			return cause
		case err == nil:
			return fmt.Errorf("%w: %w: the newest revision is %d", sqlstore.ErrUncertain, cause, found)
		}
		if !sqlstore.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%w: %w; looking for it: %w", sqlstore.ErrUncertain, cause, err)
		}
	}
}

// load fills an empty database in a transaction.
func load(ctx context.Context, tx pgx.Tx, content sqlstore.Content) error {
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
