package kine

// The statements, by database. Each uses the indexes that kine makes: kine_name_id_index
// (name, id) finds the newest row of each name without a look at the table, and the
// primary key the rest of that row. A table without that index is read all the same, more
// slowly: the names and ids are sorted, never the values.

const (
	// SQLite compares text bytewise unless a column says otherwise, and kine's does not.
	qSQLiteLive = `
SELECT kv.id, kv.name, kv.create_revision, kv.lease, length(kv.value), CASE WHEN length(kv.value) <= ?1 THEN kv.value END
FROM (SELECT name, MAX(id) AS newest FROM kine GROUP BY name ORDER BY name) AS latest
CROSS JOIN kine AS kv ON kv.id = latest.newest
WHERE kv.deleted = 0
ORDER BY latest.name`

	qSQLiteHead = `SELECT MAX(id) FROM kine`

	// qSQLiteTable tells whether a file is one of kine, by the columns of the table.
	qSQLiteTable = `SELECT COUNT(*) FROM pragma_table_info('kine') WHERE name IN ('id', 'name', 'deleted', 'create_revision', 'lease', 'value')`
)

// sqliteColumns is how many qSQLiteTable counts in a table of kine.
const sqliteColumns = 6
