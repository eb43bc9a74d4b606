//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Rewrite changes the value of a live row below the servers.
func (c *Cluster) Rewrite(ctx context.Context, k history.Key, change func(value []byte) []byte) error {
	driver, url, place := "pgx", c.StoreURL(), []any{"$1", "$2", "$3", "$4"}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, url, place = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)", []any{"?", "?", "?", "?"}
	}
	db, err := sql.Open(driver, url)
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
