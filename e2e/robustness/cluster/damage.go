//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/migrations"
)

// open opens the database for changes below the servers.
func (c *Cluster) open() (*sql.DB, error) {
	url := c.StoreURL()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	}
	return sql.Open("pgx", url)
}

// undo has, for each database, the statements that take back what each of the newest migrations made. Tables that hold values stay.
var undo = map[string]map[uint][]string{
	"sqlite":   {12: {`DROP INDEX IF EXISTS kv_past`}, 13: {`DROP VIEW IF EXISTS objects`, `DROP VIEW IF EXISTS history`, `DROP VIEW IF EXISTS kv_whole`, `DROP INDEX IF EXISTS kv_large_revision`}},
	"postgres": {12: {`DROP INDEX IF EXISTS kv_past`}, 13: nil},
}

// Unmigrate takes the newest migrations back, so that the next server that starts migrates the database. It returns an error that is
// ErrNoUndo if it does not know how.
func (c *Cluster) Unmigrate(ctx context.Context) error {
	store := "sqlite"
	if c.Postgres() != nil {
		store = "postgres"
	}
	newest, err := migrations.Newest(store)
	if err != nil {
		return err
	}
	var statements []string
	version := newest
	for ; ; version-- {
		some, ok := undo[store][version]
		if !ok {
			break
		}
		statements = append(statements, some...)
	}
	if version == newest {
		return fmt.Errorf("%w: %d", ErrNoUndo, newest)
	}
	db, err := c.open()
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range append(statements, fmt.Sprintf(`UPDATE schema_migrations SET version = %d`, version)) {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return tx.Commit()
}

// ErrNoUndo: it is not known how to take a migration back.
var ErrNoUndo = errors.New("no statement takes the newest migration back")

// Rewrite changes the value of a live row below the servers.
func (c *Cluster) Rewrite(ctx context.Context, k history.Key, change func(value []byte) []byte) error {
	place := []any{"?", "?", "?", "?"}
	if c.Postgres() != nil {
		place = []any{"$1", "$2", "$3", "$4"}
	}
	db, err := c.open()
	if err != nil {
		return err
	}
	defer db.Close()
	where := ` WHERE resource = %s AND namespace = %s AND name = %s AND superseded_revision IS NULL AND NOT deleted`
	var value []byte
	if err := db.QueryRowContext(ctx, fmt.Sprintf(`SELECT value FROM kv`+where, place[:3]...), k.Resource, k.Namespace, k.Name).Scan(&value); err != nil {
		return fmt.Errorf("reading the row of %s: %w", k, err)
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf(`UPDATE kv SET value = %s`+where, place...), change(value), k.Resource, k.Namespace, k.Name); err != nil {
		return fmt.Errorf("changing the row of %s: %w", k, err)
	}
	return nil
}
