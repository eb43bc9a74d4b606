//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"time"
)

// Leads returns for how long the holder of each lead of servers that share PostgreSQL has it, unless it renews it; nothing or less: no
// server has it.
func (c *Cluster) Leads(ctx context.Context) (left map[string]time.Duration, err error) {
	left = map[string]time.Duration{}
	err = c.queried(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT name, extract(epoch FROM until - clock_timestamp())::float8 FROM kv_lead`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var seconds float64
			if err := rows.Scan(&name, &seconds); err != nil {
				return err
			}
			left[name] = time.Duration(seconds * float64(time.Second))
		}
		return rows.Err()
	})
	return left, err
}
