//go:build unix

package cluster

import (
	"context"
	"database/sql"
	"fmt"
)

// qPieces finds the large values of SQLite that no row has, and what should not be: as of one time, as it is one statement.
const qPieces = `SELECT id, 'dropped' FROM kv_large WHERE revision = 0
UNION ALL SELECT id, 'it belongs to a row that is gone' FROM kv_large WHERE revision > 0 AND NOT EXISTS (SELECT 1 FROM kv WHERE kv.revision = kv_large.revision)
UNION ALL SELECT large, 'nothing but its pieces is there' FROM (SELECT DISTINCT large FROM kv_pieces) WHERE NOT EXISTS (SELECT 1 FROM kv_large WHERE id = large)
UNION ALL SELECT value, 'the row that has it is another one than it belongs to' FROM kv
WHERE typeof(value) = 'integer' AND NOT EXISTS (SELECT 1 FROM kv_large WHERE id = kv.value AND kv_large.revision = kv.revision)`

// Pieces returns the IDs of the large values of SQLite that no row has any more, whose pieces are to be deleted, and describes a value that
// is not as it should be; "": all are.
func (c *Cluster) Pieces(ctx context.Context) (dropped []int64, wrong string, err error) {
	err = c.queried(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, qPieces)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var what string
			if err := rows.Scan(&id, &what); err != nil {
				return err
			}
			if what == "dropped" {
				dropped = append(dropped, id)
			} else {
				wrong = fmt.Sprintf("the large value %d: %s", id, what)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, "", fmt.Errorf("reading the pieces of large values: %w", err)
	}
	return dropped, wrong, nil
}
