//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// queried calls fn with a connection to the database, for reading.
func (c *Cluster) queried(fn func(*sql.DB) error) error {
	db, err := openURL(c.StoreURL())
	if err != nil {
		return err
	}
	defer db.Close()
	return fn(db)
}

// places returns the placeholders of a query.
func (c *Cluster) places(n int) (all []any) {
	for i := range n {
		if c.Postgres() != nil {
			all = append(all, fmt.Sprintf("$%d", i+1))
		} else {
			all = append(all, "?")
		}
	}
	return all
}

// Stored returns the value of a write from the table; nil if the row is gone, as after a compaction.
func (c *Cluster) Stored(ctx context.Context, k history.Key, revision uint64) (value []byte, err error) {
	err = c.queried(func(db *sql.DB) error {
		query := fmt.Sprintf(`SELECT value FROM kv WHERE revision = %s AND resource = %s AND namespace = %s AND name = %s AND NOT deleted`, c.places(4)...)
		err := db.QueryRowContext(ctx, query, int64(revision), k.Resource, k.Namespace, k.Name).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the row of %s: %w", k, err)
	}
	return value, nil
}

// KeysInUse returns the providers and names of the keys that encrypt the values of a resource, present and past ones.
func (c *Cluster) KeysInUse(ctx context.Context, resource string) ([]string, error) {
	return c.texts(ctx, fmt.Sprintf(`SELECT DISTINCT encryption_key FROM history WHERE resource = %s AND encryption_key IS NOT NULL`, c.places(1)...), resource)
}

// VersionsInUse returns the API versions in which the objects of a resource are stored.
func (c *Cluster) VersionsInUse(ctx context.Context, resource string) ([]string, error) {
	return c.texts(ctx, fmt.Sprintf(`SELECT DISTINCT value ->> 'apiVersion' FROM objects WHERE resource = %s`, c.places(1)...), resource)
}

func (c *Cluster) texts(ctx context.Context, query string, args ...any) (all []string, err error) {
	err = c.queried(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			all = append(all, text)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return all, nil
}
