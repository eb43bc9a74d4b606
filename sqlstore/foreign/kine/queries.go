package kine

// The statements, by database. Each uses the indexes that kine makes: kine_name_id_index
// (name, id) finds the newest row of each name without a look at the table, and the
// primary key the rest of that row. A table without that index is read all the same, more
// slowly: the names and ids are sorted, never the values.

const (
	// SQLite compares text bytewise unless a column has another collation. length counts letters, and only those
	// before a zero, whereas octet_length counts the bytes that would be read. ORDER BY of the whole would
	// sort the values too: the order of the names, which LIMIT keeps SQLite from dropping, is that in which a
	// CROSS JOIN looks up the rows, and the reader checks it.
	qSQLiteLive = `
SELECT kv.id, kv.name, kv.create_revision, kv.lease, octet_length(kv.value), CASE WHEN octet_length(kv.value) <= ?1 THEN kv.value END
FROM (SELECT name, MAX(id) AS newest FROM kine GROUP BY name COLLATE BINARY ORDER BY name COLLATE BINARY LIMIT -1) AS latest
CROSS JOIN kine AS kv ON kv.id = latest.newest
WHERE kv.deleted = 0`

	// PostgreSQL reads each row by its ID, in the order of the names, whatever order the column has: OFFSET 0
	// keeps it from first reading all rows and sorting them with their values.
	qPostgresLive = `
SELECT kv.id, latest.name, kv.create_revision, kv.lease, octet_length(kv.value), CASE WHEN octet_length(kv.value) <= $1 THEN kv.value END
FROM (SELECT name, MAX(id) AS newest FROM kine GROUP BY name) AS latest
CROSS JOIN LATERAL (SELECT id, create_revision, lease, deleted, value FROM kine WHERE id = latest.newest OFFSET 0) AS kv
WHERE kv.deleted = 0
ORDER BY latest.name COLLATE "C"`

	// MySQL takes names that differ only in case for the same ones, by the collation of kine's column; as keys
	// of etcd they are different. The names are sorted before the rows are read.
	qMySQLLive = `
SELECT STRAIGHT_JOIN kv.id, latest.bytes, kv.create_revision, kv.lease, LENGTH(kv.value), CASE WHEN LENGTH(kv.value) <= ? THEN kv.value END
FROM (SELECT CAST(name AS BINARY) AS bytes, MAX(id) AS newest FROM kine GROUP BY CAST(name AS BINARY)) AS latest
JOIN kine AS kv ON kv.id = latest.newest
WHERE kv.deleted = 0
ORDER BY latest.bytes`

	qHead = `SELECT MAX(id) FROM kine`

	qPostgresTable = `SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'kine' AND column_name IN ('id', 'name', 'deleted', 'create_revision', 'lease', 'value')`

	qMySQLTable = `SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'kine' AND column_name IN ('id', 'name', 'deleted', 'create_revision', 'lease', 'value')`

	// qSQLiteTable checks whether a file is one of kine, by the columns of the table. A view or a virtual
	// table in its place could run code of the file's author, and if id alone is not the primary key each row
	// costs a scan.
	qSQLiteTable = `SELECT COUNT(*) FROM pragma_table_info('kine') WHERE name IN ('id', 'name', 'deleted', 'create_revision', 'lease', 'value')
 AND (name <> 'id' OR pk = 1) AND (SELECT COUNT(*) FROM pragma_table_info('kine') WHERE pk > 0) = 1
 AND (SELECT COUNT(*) FROM pragma_table_list('kine') WHERE schema = 'main' AND type = 'table') = 1`
)

// kineColumns is the number of these that a table of kine has.
const kineColumns = 6

// The objects that kine creates when it starts on an empty database. It adds missing indexes. On MySQL its
// names are case-insensitive, although names of roles may differ only by case: ours are case-sensitive.
var (
	sqliteSchema = append([]string{`CREATE TABLE IF NOT EXISTS kine (
 id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, deleted INTEGER, create_revision INTEGER,
 prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)`}, indexes("IF NOT EXISTS ")...)

	postgresSchema = append([]string{`CREATE TABLE IF NOT EXISTS kine (
 id BIGSERIAL PRIMARY KEY, name text COLLATE "C", created INTEGER, deleted INTEGER, create_revision BIGINT,
 prev_revision BIGINT, lease INTEGER, value bytea, old_value bytea)`}, indexes("IF NOT EXISTS ")...)

	mysqlSchema = append([]string{`CREATE TABLE kine (
 id BIGINT UNSIGNED AUTO_INCREMENT, name VARCHAR(630) CHARACTER SET ascii COLLATE ascii_bin, created INTEGER, deleted INTEGER, create_revision BIGINT UNSIGNED,
 prev_revision BIGINT UNSIGNED, lease INTEGER, value MEDIUMBLOB, old_value MEDIUMBLOB, PRIMARY KEY (id))`}, indexes("")...)
)

// indexes returns the indexes of the table.
func indexes(unless string) []string {
	return []string{
		"CREATE INDEX " + unless + "kine_name_index ON kine (name)",
		"CREATE INDEX " + unless + "kine_name_id_index ON kine (name, id)",
		"CREATE INDEX " + unless + "kine_id_deleted_index ON kine (id, deleted)",
		"CREATE INDEX " + unless + "kine_prev_revision_index ON kine (prev_revision)",
		"CREATE UNIQUE INDEX " + unless + "kine_name_prev_revision_uindex ON kine (name, prev_revision)",
		"CREATE INDEX " + unless + "kine_list_query_index ON kine (name, id DESC, deleted)",
	}
}

const (
	qInsert         = `INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value, old_value) VALUES (?, ?, ?, 0, ?, ?, ?, ?, NULL)`
	qPostgresInsert = `INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value, old_value) VALUES ($1, $2, $3, 0, $4, $5, $6, $7, NULL)`

	qAny = `SELECT id FROM kine LIMIT 1`

	// qPostgresSequence lets later rows go on above those with a number of their own.
	qPostgresSequence = `SELECT setval(pg_get_serial_sequence('kine', 'id'), (SELECT MAX(id) FROM kine))`

	qMySQLDrop = `DROP TABLE kine`

	// qSQLiteLog makes a file use a write-ahead log, for every program that opens it.
	qSQLiteLog = `PRAGMA journal_mode = wal`
)

// qNames counts the names that there are or were, by the index of names.
const qNames = `SELECT COUNT(DISTINCT name) FROM kine`
