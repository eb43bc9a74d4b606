package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	migratesqlite "github.com/golang-migrate/migrate/v4/database/sqlite"

	"github.com/rowlock/rowlock/migrations"
	"github.com/rowlock/rowlock/sqlstore"
)

// migrate brings the schema up to date, or returns why it cannot be used.
func (d *Driver) migrate() error {
	known, err := migrations.Newest("sqlite")
	if err != nil {
		return err
	}
	found, dirty, err := d.schema()
	if err != nil {
		return err
	}
	compatible := func() (int64, error) {
		n, err := d.writer.number(`SELECT value FROM kv_meta WHERE key = 'schema_compatible'`)
		if err != nil {
			return 0, fmt.Errorf("reading the schema's compatibility: %w", err)
		}
		return n, nil
	}
	lacks, err := sqlstore.Schema{Found: found, Known: known, Dirty: dirty}.Lacks(compatible, d.cfg.NoMigrate)
	if err == nil && lacks {
		err = d.migrateUp()
	}
	if err != nil || d.cfg.NoMigrate || found > known {
		return err
	}
	return d.addChecksums()
}

// addChecksums adds the column of migration 10 where it is missing, also behind a process that died before it did.
func (d *Driver) addChecksums() error {
	n, err := d.writer.number(`SELECT count(*) FROM pragma_table_info('kv') WHERE name = 'checksum'`)
	if err == nil && n == 0 {
		err = d.writer.exec(`ALTER TABLE kv ADD COLUMN checksum INTEGER`)
	}
	if err != nil {
		return fmt.Errorf("adding the column checksum to kv: %w", err)
	}
	return nil
}

func (d *Driver) migrateUp() error {
	patient := fmt.Sprintf("busy_timeout(%d)", max(d.cfg.BusyTimeout, time.Minute).Milliseconds()) // SQLite's lock is not fair to waiters
	db := sql.OpenDB(connector{path: d.path, pragmas: append(d.writerPragmas(), patient, spillPragma)})
	defer db.Close()
	drv, err := migratesqlite.WithInstance(db, &migratesqlite.Config{})
	if err != nil {
		return translate(err)
	}
	if err := migrations.Up("sqlite", drv); err != nil {
		return translate(err)
	}
	return nil
}

// schema reads the version that golang-migrate recorded; 0 for an empty file.
func (d *Driver) schema() (version uint, dirty bool, err error) {
	n, err := d.writer.number(`SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'`)
	if err != nil || n == 0 {
		return 0, false, err
	}
	var v [2]driver.Value
	found, err := d.writer.one(v[:], `SELECT version, CAST(dirty AS INTEGER) FROM schema_migrations`)
	if err != nil || !found {
		return 0, false, err
	}
	number, _ := v[0].(int64)
	flag, _ := v[1].(int64)
	return uint(max(number, 0)), flag != 0, nil
}

// connector lets golang-migrate open connections the way the driver does.
type connector struct {
	path    string
	pragmas []string
}

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := connect(c.path, c.pragmas)
	if err != nil {
		return nil, err
	}
	return conn.raw, nil
}

func (c connector) Driver() driver.Driver { return nil }
