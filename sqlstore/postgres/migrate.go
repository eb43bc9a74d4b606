package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	migrate "github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/migrations"
	"github.com/rowlock/rowlock/sqlstore"
)

// migrate brings the schema up to date, or returns why it cannot be used.
func (d *Driver) migrate(ctx context.Context) error {
	known, err := migrations.Newest("postgres")
	if err != nil {
		return err
	}
	found, dirty, err := d.schema(ctx)
	if err != nil {
		return err
	}
	compatible := func() (n int64, err error) {
		if err := d.pool.QueryRow(ctx, `SELECT number FROM kv_meta WHERE key = 'schema_compatible'`).Scan(&n); err != nil {
			return 0, fmt.Errorf("reading the schema's compatibility: %w", d.translate(ctx, err))
		}
		return n, nil
	}
	lacks, err := sqlstore.Schema{Found: found, Known: known, Dirty: dirty}.Lacks(compatible, d.cfg.NoMigrate)
	if err != nil || !lacks {
		return err
	}
	return d.migrateUp(ctx)
}

// migrateUp runs the missing migrations, unless another server, which it waits for, has done so.
// The lock is a transaction's, as poolers in transaction mode lend no longer; its number is the one
// that golang-migrate's own driver uses.
func (d *Driver) migrateUp(ctx context.Context) error {
	holder, err := d.connect(ctx)
	if err != nil {
		return d.translate(ctx, err)
	}
	defer holder.Close(over)
	var database, schema string
	if err := holder.QueryRow(ctx, `SELECT current_database(), current_schema()`).Scan(&database, &schema); err != nil {
		return d.translate(ctx, err)
	}
	number, err := migrate.GenerateAdvisoryLockId(database, schema, "schema_migrations")
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"BEGIN", qNoLimits, "SET LOCAL lock_timeout = 0", "SELECT pg_advisory_xact_lock(" + number + ")",
	} {
		if err := execute(ctx, holder, statement); err != nil {
			return d.translate(ctx, err)
		}
	}
	worker, err := d.connect(ctx)
	if err != nil {
		return d.translate(ctx, err)
	}
	defer worker.Close(over)
	if err := up(ctx, worker); err != nil {
		return d.translate(ctx, err)
	}
	if err := execute(ctx, worker, qHandRights); err != nil { // the owner's own work goes on without
		d.cfg.Log.Warn("cannot grant the roles that have rights on the table kv the same rights on tables that migrations added; grant them yourself (docs/postgres.md, Roles and grants)", "error", err)
	}
	return nil
}

// up runs the missing migrations.
func up(ctx context.Context, c *pgx.Conn) error {
	if err := execute(ctx, c, `CREATE TABLE IF NOT EXISTS schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`); err != nil {
		return err
	}
	return migrations.Up("postgres", &migrator{ctx, c})
}

// execute runs statements in one go: more than one are one transaction.
func execute(ctx context.Context, c *pgx.Conn, statements string) error {
	_, err := c.PgConn().Exec(ctx, statements).ReadAll()
	return err
}

// migrator implements the database driver of golang-migrate. Its caller holds the lock.
type migrator struct {
	ctx  context.Context
	conn *pgx.Conn
}

func (m *migrator) Open(string) (migrate.Driver, error) { return nil, errors.ErrUnsupported }
func (m *migrator) Drop() error                         { return errors.ErrUnsupported }
func (m *migrator) Close() error                        { return nil }
func (m *migrator) Lock() error                         { return nil }
func (m *migrator) Unlock() error                       { return nil }

// Run runs a file, as one transaction.
func (m *migrator) Run(file io.Reader) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return execute(m.ctx, m.conn, qNoLimits+"; "+string(text))
}

// SetVersion remembers which file is done, or begun.
func (m *migrator) SetVersion(version int, dirty bool) error {
	statements := "DELETE FROM schema_migrations"
	if version >= 0 || dirty {
		statements += fmt.Sprintf("; INSERT INTO schema_migrations (version, dirty) VALUES (%d, %t)", version, dirty)
	}
	return execute(m.ctx, m.conn, statements)
}

// Version returns the file that was begun last.
func (m *migrator) Version() (version int, dirty bool, err error) {
	err = m.conn.QueryRow(m.ctx, `SELECT version, dirty FROM schema_migrations LIMIT 1`).Scan(&version, &dirty)
	if errors.Is(err, pgx.ErrNoRows) {
		return migrate.NilVersion, false, nil
	}
	return version, dirty, err
}

func (d *Driver) schema(ctx context.Context) (version uint, dirty bool, err error) {
	var there bool
	if err := d.pool.QueryRow(ctx, qTable).Scan(&there); err != nil {
		return 0, false, d.translate(ctx, err)
	}
	if !there {
		return 0, false, nil
	}
	var n int64
	err = d.pool.QueryRow(ctx, qSchema).Scan(&n, &dirty)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return uint(max(n, 0)), dirty, d.translate(ctx, err)
}
