package postgres

// Every statement of the driver, with the index that it needs. Tests hold each
// against EXPLAIN on a large table.
const (
	qBegin         = `BEGIN ISOLATION LEVEL READ COMMITTED`
	qBeginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	qCommit        = `COMMIT`

	// What a store depends on; of catalogs and settings, at the start.
	qSurroundings = `SELECT current_database()::text, current_user::text, current_setting('server_encoding'), coalesce(current_schema()::text, ''), current_setting('search_path'),` +
		` coalesce((SELECT reset_val FROM pg_settings WHERE name = 'idle_session_timeout'), ''),` +
		` current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8 - coalesce(current_setting('reserved_connections', true), '0')::int8,` +
		` (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::int8, (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::int8,` +
		` (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), pg_backend_pid()::int8`
	// Limits that a role or a database may have, from PostgreSQL 14 and 17 on: they would end sessions that
	// wait for notifications, and the reading of everything.
	qNoTimeouts = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')`
	// The same in a transaction of a migration, which may take as long as it takes to index a large table, and in the one that waits
	// with the lock of migrations.
	qNoLimits = `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`
	// Of a session, or of a transaction alone; for client_min_messages see confirmed. One statement: with a pooler it comes first in
	// each transaction.
	qSettings = `SELECT set_config('statement_timeout', '%[2]d', %[1]t), set_config('lock_timeout', '%[3]d', %[1]t), set_config('idle_in_transaction_session_timeout', '%[2]d', %[1]t),` +
		` set_config('client_min_messages', 'warning', %[1]t), set_config('enable_seqscan', 'off', %[1]t), set_config('enable_bitmapscan', 'off', %[1]t),` +
		` set_config('enable_hashjoin', 'off', %[1]t), set_config('enable_mergejoin', 'off', %[1]t)`
	// Of sessions that are no pooler's, the listening one among them. Generic plans: the custom plan of a long array costs more than its
	// run. Keepalives: a server whose machine vanished must not keep its locks.
	qOwnSession = `SET plan_cache_mode = force_generic_plan; SET default_transaction_isolation = 'read committed'; ` + qNoTimeouts +
		`; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3`

	columns = `revision, resource, namespace, name, created_revision, superseded_revision, deleted, value, expires_at, written_at`

	// kv_meta by primary key.
	qBounds    = `SELECT (SELECT number FROM kv_meta WHERE key = 'floor'), (SELECT number FROM kv_meta WHERE key = 'revision')`
	qBoundsNow = `SELECT (SELECT number FROM kv_meta WHERE key = 'floor'), (SELECT number FROM kv_meta WHERE key = 'revision'), clock_timestamp(), EXISTS (SELECT FROM kv_alive WHERE one = 1), coalesce((SELECT number FROM kv_meta WHERE key = 'line'), 0),` +
		` ` + waitsForStandby
	waitsForStandby = `current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')`
	// The lock of all writers: first in every writing transaction, in a statement of
	// its own, so that the statements after it look with newer snapshots.
	qLock       = `SELECT number FROM kv_meta WHERE key = 'revision' FOR UPDATE`
	qRaiseFloor = `UPDATE kv_meta SET number = $1 WHERE key = 'floor' AND number < $1`
	// The lock for raising the floors, in a statement of its own like that of the writers: an operator's command compacts
	// without a lead.
	qLockFloors = `SELECT FROM kv_meta WHERE key = 'floor' FOR UPDATE`
	qCompatible = `UPDATE kv_meta SET number = $2 WHERE key = 'schema_compatible' AND number = $1`
	// Filling an empty database; kv_meta by primary key.
	qSetRevision  = `UPDATE kv_meta SET number = $1 WHERE key = 'revision'`
	qSetClusterID = `UPDATE kv_meta SET word = $1 WHERE key = 'cluster_id'`
	// The same at the head of a batch, which ends (division by zero) if PostgreSQL has crashed since it was last examined, or lacks a revision,
	// $1, which was seen, or has another line than $2: see examine. kv_meta and kv_alive by primary key.
	qLockAlive = `SELECT number, 1 / (SELECT count(*) FROM kv_alive WHERE one = 1), 1 / (number >= $1::int8)::int, 1 / (SELECT count(*) FROM kv_meta WHERE key = 'line' AND number = $2) FROM kv_meta WHERE key = 'revision' FOR UPDATE`
	// What else decides whether revisions are left out: the reserved revisions, whether commits wait for the disk, for how
	// many seconds nothing was written, and the time in microseconds. kv_meta, kv_alive and kv by primary key.
	qAlive = `SELECT EXISTS (SELECT FROM kv_alive WHERE one = 1), coalesce((SELECT number FROM kv_meta WHERE key = 'relaxed'), 0),` +
		` current_setting('synchronous_commit') = 'off',` +
		` coalesce(extract(epoch FROM clock_timestamp() - (SELECT written_at FROM kv WHERE revision > 0 ORDER BY revision DESC LIMIT 1)), 0)::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8`
	// The database in use, and the row with its identity at the time when servers used it: see lineage. The timeline is in the
	// name of the file that PostgreSQL writes its log to. kv_meta by primary key, pg_database by name.
	placeRest = `(SELECT oid FROM pg_database WHERE datname = current_database())::text, coalesce(to_regclass('kv')::oid::text, ''),` +
		` coalesce((SELECT number FROM kv_meta WHERE key = 'line'), 0)::text, coalesce((SELECT word FROM kv_meta WHERE key = 'line'), '')`
	qCluster   = `SELECT (SELECT system_identifier FROM pg_control_system())::text, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int::text`
	qPlace     = qCluster + `, ` + placeRest
	qPlaceBare = `SELECT '', '0', ` + placeRest
	qSetLine   = `INSERT INTO kv_meta (key, number, word) VALUES ('line', $1, $2) ON CONFLICT (key) DO UPDATE SET number = excluded.number, word = excluded.word`
	qRevive    = `INSERT INTO kv_alive (one) VALUES (1) ON CONFLICT (one) DO NOTHING`
	// Revisions up to 'relaxed' are reserved for relaxed commits; kv_meta by primary key. A
	// transaction of $1 operations relaxes only where that many are left.
	qReserve = `INSERT INTO kv_meta (key, number) SELECT 'relaxed', number + $1 FROM kv_meta WHERE key = 'revision'` +
		` ON CONFLICT (key) DO UPDATE SET number = greatest(kv_meta.number, excluded.number) RETURNING number`
	qRelax = `SELECT set_config('synchronous_commit', 'off', true) FROM kv_meta m, kv_meta r WHERE m.key = 'revision' AND r.key = 'relaxed' AND m.number + $1::int8 <= r.number`
	// The epoch, and the keys of the cache files that the database attests to. Before them: since when this very database
	// has been open without having gone back (with the row of its line). kv_meta by primary key.
	qCacheFiles = `SELECT (SELECT oid FROM pg_database WHERE datname = current_database()) || ' ' || extract(epoch FROM pg_postmaster_start_time())` +
		` || ' ' || coalesce((SELECT number FROM kv_meta WHERE key = 'line'), 0), m.word FROM kv_meta m WHERE m.key = 'cache_files'`
	qLockCacheFiles = qCacheFiles + ` FOR UPDATE`
	qCacheFilesRow  = `INSERT INTO kv_meta (key) VALUES ('cache_files') ON CONFLICT (key) DO NOTHING`
	qSetCacheFiles  = `INSERT INTO kv_meta (key, word) VALUES ('cache_files', $1) ON CONFLICT (key) DO UPDATE SET word = excluded.word`
	qFence          = `UPDATE kv_meta SET number = $1 WHERE key = 'schema_compatible' AND number < $1`
	qFlush          = `UPDATE kv_meta SET word = word WHERE key = 'relaxed'`
	// The marker of a server's last batch: word is the batch's number and, behind it,
	// the counter after each of its waves; number is the counter before it.
	qMarker     = `SELECT word, number FROM kv_meta WHERE key = $1`
	qSetMarker  = `UPDATE kv_meta SET word = $2, number = (SELECT number FROM kv_meta WHERE key = 'revision') WHERE key = $1`
	qNewMarker  = `INSERT INTO kv_meta (key, word, number) SELECT $1, $2, number FROM kv_meta WHERE key = 'revision' ON CONFLICT (key) DO UPDATE SET word = excluded.word, number = excluded.number`
	qDropMarker = `DELETE FROM kv_meta WHERE key = $1`
	// Markers of servers that are long gone, by a wide margin: that of a batch whose
	// outcome is still asked for must stay. Few rows, read once at start.
	qOldMarkers = `DELETE FROM kv_meta WHERE key LIKE 'batch:%' AND number + 1000000 < (SELECT number FROM kv_meta WHERE key = 'floor')`
)

// A wave is the part of a batch whose keys all differ. An operation may go ahead if its key is as it
// expects; a Txn if all its operations may. A scalar subquery is looked up for each operation; NOT EXISTS
// might be answered from all live keys, hashed.
const (
	// kv by primary key and kv_live, per operation; kv_meta by primary key. What replaces a row comes from the update
	// that ended that row, so it cannot be inserted before. $8 has the values one behind the other, of which an operation
	// has size bytes from at on: an element of an array of values would be searched for from the array's beginning. The
	// marker $10 moves on with the counter: it must be that of batch $11, the one before in the first wave, and else the
	// transaction ends (division by zero), as a batch that was given up must not be done when it arrives late. $12 is
	// the new marker, NULL after the first wave.
	qWave = `WITH op AS (
  SELECT o.*, k.created_revision,
         CASE WHEN o.verb = 1
           THEN (SELECT l.revision FROM kv l WHERE l.resource = o.resource COLLATE "C" AND l.namespace = o.namespace COLLATE "C" AND l.name = o.name COLLATE "C" AND l.superseded_revision IS NULL) IS NULL
           ELSE k.revision IS NOT NULL END AS may
  FROM unnest($1::int4[], $2::int4[], $3::int4[], $4::text[], $5::text[], $6::text[], $7::int8[], $13::timestamptz[], $14::int4[], $15::int4[]) AS o (ord, txn, verb, resource, namespace, name, expect, expires, at, size)
  LEFT JOIN kv k ON o.verb <> 1 AND k.revision = o.expect AND k.resource = o.resource COLLATE "C" AND k.namespace = o.namespace COLLATE "C" AND k.name = o.name COLLATE "C"
    AND NOT k.deleted AND (k.superseded_revision IS NULL OR k.superseded_revision > (SELECT number FROM kv_meta WHERE key = 'revision'))
), good AS (
  SELECT op.*, (SELECT number FROM kv_meta WHERE key = 'revision') + row_number() OVER (ORDER BY ord) AS revision
  FROM op WHERE txn NOT IN (SELECT txn FROM op WHERE NOT may)
), ended AS (
  UPDATE kv SET superseded_revision = good.revision FROM good WHERE good.verb <> 1 AND kv.revision = good.expect
  RETURNING good.*
), new AS (
  INSERT INTO kv (` + columns + `)
  SELECT revision, resource, namespace, name, CASE WHEN verb = 1 THEN revision ELSE created_revision END,
         CASE WHEN verb = 3 THEN revision END, verb = 3, substring($8::bytea FROM at FOR size), CASE WHEN verb <> 3 THEN expires END, $9::timestamptz
  FROM (SELECT * FROM good WHERE verb = 1 UNION ALL SELECT * FROM ended) n
), counted AS (
  SELECT m.number AS before, m.number + (SELECT count(*) FROM good) AS number FROM kv_meta m WHERE m.key = 'revision'
), mark AS (
  UPDATE kv_meta m
  SET number = CASE WHEN m.key = 'revision' THEN c.number WHEN $12::text IS NULL THEN m.number ELSE c.before END,
      word = CASE WHEN m.key = 'revision' THEN m.word ELSE coalesce($12::text, m.word) || ',' || c.number::text END
  FROM counted c
  WHERE m.key IN ('revision', $10) AND (m.key = 'revision' OR split_part(m.word, ',', 1) = $11)
  RETURNING m.key
)
SELECT 0, true, 1 / count(*), '', '', '', 0::int8, NULL::int8, false, NULL::bytea, NULL::timestamptz, $9::timestamptz FROM mark WHERE key = $10
UNION ALL
SELECT good.ord, true, good.revision, '', '', '', CASE WHEN good.verb = 1 THEN good.revision ELSE good.created_revision END, NULL, false, NULL, NULL, $9::timestamptz FROM good
UNION ALL
SELECT -op.ord, l.revision IS NOT NULL, coalesce(l.revision, 0), op.resource, op.namespace, op.name, coalesce(l.created_revision, 0),
       l.superseded_revision, coalesce(l.deleted, false), l.value, l.expires_at, coalesce(l.written_at, 'epoch')
FROM op LEFT JOIN LATERAL (SELECT * FROM kv WHERE resource = op.resource COLLATE "C" AND namespace = op.namespace COLLATE "C" AND name = op.name COLLATE "C" AND superseded_revision IS NULL OFFSET 0) l ON true
WHERE NOT op.may`
	// kv by primary key.
	qWritten = `SELECT revision, created_revision, resource, namespace, name FROM kv WHERE revision > $1 AND revision <= $2 ORDER BY revision`
)

// Reading pages. Each shape of request has its own text, so that each uses its
// index fully. $1 is the snapshot's revision, or the greatest integer.
const (
	inAll       = ` AND (resource, namespace, name) > ($2, $3, $4) AND ($5 = '' OR namespace = $5)`
	inResource  = ` AND resource = $2 AND (namespace, name) > ($3, $4)`
	inNamespace = ` AND resource = $2 AND namespace = $3 AND name > $4`

	isLive   = ` FROM kv WHERE superseded_revision IS NULL AND revision <= $1`
	keyOrder = ` ORDER BY resource, namespace, name LIMIT `

	// kv_live, in its order.
	qLiveAll       = `SELECT ` + columns + isLive + inAll + keyOrder + `$6`
	qLiveResource  = `SELECT ` + columns + isLive + inResource + keyOrder + `$5`
	qLiveNamespace = `SELECT ` + columns + isLive + inNamespace + keyOrder + `$5`

	// kv_ended, then sorted; reads what ended since the snapshot. Values are fetched
	// for the page alone, by primary key. The upper bound is always true: with it the
	// planner expects a range, and does not walk kv_past instead.
	hasEnded = `WITH e AS MATERIALIZED (SELECT revision, resource, namespace, name FROM kv WHERE superseded_revision IS NOT NULL` +
		` AND superseded_revision > $1 AND superseded_revision <= (SELECT number FROM kv_meta WHERE key = 'revision') AND revision <= $1)
SELECT ` + columns + ` FROM kv WHERE revision IN (SELECT revision FROM e WHERE true`
	endedOrder = `) ORDER BY resource, namespace, name`

	qEndedAll       = hasEnded + inAll + keyOrder + `$6` + endedOrder
	qEndedResource  = hasEnded + inResource + keyOrder + `$5` + endedOrder
	qEndedNamespace = hasEnded + inNamespace + keyOrder + `$5` + endedOrder

	// Everything at a revision, $1, as of a head, $2: one part, $4, of $3. The bitmap of
	// kv_live and of kv_ended, so that pages are visited once and in their order; the
	// sums keep the primary key from being taken for a shorter way. Rows of a stretch
	// of revisions lie together.
	wholeColumns = `SELECT revision, resource, namespace, name, created_revision, value FROM kv WHERE superseded_revision IS `
	wholePart    = ` AND revision + 0 <= $1 AND revision / 64 % $3 = $4`
	qWhole       = wholeColumns + `NULL` + wholePart + ` UNION ALL ` +
		wholeColumns + `NOT NULL AND superseded_revision > $1 AND superseded_revision <= $2` + wholePart
	// The same pages, for the revisions alone.
	listRevisions  = `SELECT revision FROM kv WHERE revision + 0 <= $1 AND superseded_revision IS `
	qListRevisions = listRevisions + `NULL UNION ALL ` + listRevisions + `NOT NULL AND superseded_revision > $1 AND superseded_revision <= $2`
	// kv by primary key.
	qWholeRows = `SELECT revision, resource, namespace, name, created_revision, value FROM kv WHERE revision = ANY($1::int8[])`
	// What suits that, of the settings that the server has and has not turned off. Few rows.
	qWholeSettings = `SELECT set_config(s.name, w.value, true) FROM pg_settings s, (VALUES ('enable_bitmapscan', 'on'), ('enable_indexscan', 'off'),
  ('effective_io_concurrency', '64'), ('jit', 'off'), ('statement_timeout', '0')) AS w (name, value) WHERE s.name = w.name AND s.setting <> '0'`

	// kv_live.
	qLive = `SELECT ` + columns + ` FROM kv WHERE resource = $1 AND namespace = $2 AND name = $3 AND superseded_revision IS NULL`
	// kv_past: the first row of a key that ended after a revision, if it was there then.
	past       = ` FROM kv WHERE superseded_revision IS NOT NULL AND superseded_revision > $1 AND resource = `
	pastOrder  = ` ORDER BY superseded_revision, revision LIMIT 1`
	qReadEnded = `SELECT * FROM (SELECT ` + columns + past + `$2 AND namespace = $3 AND name = $4` + pastOrder + `) p WHERE revision <= $1`

	// kv_past, backwards: what ended above a floor, $5, and below a revision. Of the rows that ended at one revision, that of a delete is the newer.
	qPast = `SELECT ` + columns + ` FROM kv WHERE superseded_revision IS NOT NULL AND superseded_revision > $5` +
		` AND superseded_revision < $1 AND resource = $2 AND namespace = $3 AND name = $4 ORDER BY superseded_revision DESC, revision DESC LIMIT $6`

	// kv_past, twice for each key: from one key that has ended rows to the next, and
	// to its row at a revision; up to a last key.
	pastKey  = `SELECT resource, namespace, name FROM kv WHERE superseded_revision IS NOT NULL`
	pastNext = ` ORDER BY resource, namespace, name LIMIT 1) UNION ALL SELECT n.resource, n.namespace, n.name FROM k, LATERAL (` + pastKey
	pastRow  = ` ORDER BY resource, namespace, name LIMIT 1) n)
SELECT p.* FROM k, LATERAL (SELECT ` + columns + past + `k.resource AND namespace = k.namespace AND name = k.name` + pastOrder + `) p WHERE p.revision <= $1 LIMIT `
	qPastAll = `WITH RECURSIVE k AS ((` + pastKey + inAll + pastNext + ` AND (resource, namespace, name) > (k.resource, k.namespace, k.name) AND ($5 = '' OR namespace = $5)` +
		` AND ($7::text IS NULL OR (resource, namespace, name) <= ($7, $8::text, $9::text))` + pastRow + `$6`
	qPastResource = `WITH RECURSIVE k AS ((` + pastKey + inResource + pastNext + ` AND resource = $2 AND (namespace, name) > (k.namespace, k.name)` +
		` AND ($6::text IS NULL OR (resource, namespace, name) <= ($6, $7::text, $8::text))` + pastRow + `$5`
	qPastNamespace = `WITH RECURSIVE k AS ((` + pastKey + inNamespace + pastNext + ` AND resource = $2 AND namespace = $3 AND name > k.name` +
		` AND ($6::text IS NULL OR (resource, namespace, name) <= ($6, $7::text, $8::text))` + pastRow + `$5`

	// Packs. Those of one key are in the order of until_revision, and older than its rows in kv.
	packColumns = `resource, namespace, name, first_revision, until_revision, created_revision, deleted, count, written_at, value`
	ofKey       = ` WHERE resource = $2 AND namespace = $3 AND name = $4`

	// kv_meta by primary key.
	qNote      = `SELECT coalesce((SELECT word FROM kv_meta WHERE key = 'note:' || $1::text), '')`
	qNewNote   = `INSERT INTO kv_meta (key, word) VALUES ('note:' || $1::text, $2) ON CONFLICT (key) DO NOTHING`
	qSetNote   = `UPDATE kv_meta SET word = $3 WHERE key = 'note:' || $1::text AND word = $2`
	qFloors    = `SELECT coalesce((SELECT word FROM kv_meta WHERE key = 'past'), '')`
	qSetFloors = `INSERT INTO kv_meta (key, word) VALUES ('past', $1) ON CONFLICT (key) DO UPDATE SET word = excluded.word`

	// kv_packed_past: the first pack of a key that ended after a revision; those before one, backwards.
	qPacked      = `SELECT ` + packColumns + ` FROM kv_packed` + ofKey + ` AND until_revision > $1 ORDER BY until_revision LIMIT 1`
	qPackedBelow = `SELECT ` + packColumns + ` FROM kv_packed` + ofKey + ` AND until_revision < $1 AND until_revision > $5 ORDER BY until_revision DESC LIMIT $6`

	// kv_packed_past, twice for each key: as kv_past above.
	packedKey  = `SELECT resource, namespace, name FROM kv_packed WHERE true`
	packedNext = ` ORDER BY resource, namespace, name LIMIT 1) UNION ALL SELECT n.resource, n.namespace, n.name FROM k, LATERAL (` + packedKey
	packedRow  = ` ORDER BY resource, namespace, name LIMIT 1) n)
SELECT p.* FROM k, LATERAL (SELECT ` + packColumns + ` FROM kv_packed WHERE resource = k.resource AND namespace = k.namespace AND name = k.name AND until_revision > $1` +
		` ORDER BY until_revision LIMIT 1) p WHERE p.first_revision <= $1 LIMIT `
	qPackedAll = `WITH RECURSIVE k AS ((` + packedKey + inAll + packedNext + ` AND (resource, namespace, name) > (k.resource, k.namespace, k.name) AND ($5 = '' OR namespace = $5)` +
		` AND ($7::text IS NULL OR (resource, namespace, name) <= ($7, $8::text, $9::text))` + packedRow + `$6`
	qPackedResource = `WITH RECURSIVE k AS ((` + packedKey + inResource + packedNext + ` AND resource = $2 AND (namespace, name) > (k.namespace, k.name)` +
		` AND ($6::text IS NULL OR (resource, namespace, name) <= ($6, $7::text, $8::text))` + packedRow + `$5`
	qPackedNamespace = `WITH RECURSIVE k AS ((` + packedKey + inNamespace + packedNext + ` AND resource = $2 AND namespace = $3 AND name > k.name` +
		` AND ($6::text IS NULL OR (resource, namespace, name) <= ($6, $7::text, $8::text))` + packedRow + `$5`

	// kv_packed_past, and kv_past: the next key.
	behindKey   = ` AND (resource, namespace, name) > ($1, $2, $3) ORDER BY resource, namespace, name LIMIT 1`
	qNextPacked = packedKey + behindKey
	qNextEnded  = pastKey + behindKey
	// kv_past: the rows of a key that ended in a range, oldest first.
	qEndedRows = `SELECT ` + columns + ` FROM kv` + ofKey + ` AND superseded_revision IS NOT NULL AND superseded_revision >= $1 AND superseded_revision <= $5 AND revision > $7 ORDER BY superseded_revision, revision LIMIT $6`
	// kv by primary key.
	qUnkeep  = `DELETE FROM kv USING unnest($1::int8[], $2::bytea[]) n (revision, value) WHERE kv.revision = n.revision AND kv.value = n.value AND kv.superseded_revision <= (SELECT number FROM kv_meta WHERE key = 'floor')`
	qRestate = `UPDATE kv SET value = n.value FROM unnest($1::int8[], $2::bytea[]) n (revision, value) WHERE kv.revision = n.revision AND kv.superseded_revision IS NOT NULL`
	// Maintains the indexes of kv_packed.
	qInsertPacks = `INSERT INTO kv_packed (` + packColumns + `) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::bool[], $8::int4[], $9::timestamptz[], $10::bytea[])`
	// kv_packed_past.
	qDropPack = `DELETE FROM kv_packed WHERE resource = $1 AND namespace = $2 AND name = $3 AND until_revision = $4 AND value = $5`

	// kv_packed_ended: the next resource that has packs, and its oldest packs.
	qNextForget = `SELECT resource FROM kv_packed WHERE resource > $1 ORDER BY resource LIMIT 1`
	qForget     = `DELETE FROM kv_packed WHERE ctid = ANY(ARRAY(SELECT ctid FROM kv_packed WHERE resource = $1 AND until_revision + 0 <= $2 ORDER BY until_revision + 0 LIMIT $3))`

	// kv by primary key.
	qSeconds = `SELECT floor(extract(epoch FROM written_at))::bigint, max(revision) FROM kv WHERE revision > $1 AND revision <= $2 GROUP BY 1`
	// Times go back where clocks were set: the first row of a time, and the newest row before another one.
	qYoung  = `SELECT revision FROM kv WHERE revision > $1 AND revision <= $2 AND written_at > $3 AND written_at <= $4 ORDER BY revision LIMIT 1`
	qOldest = `SELECT revision, written_at FROM kv WHERE revision > $1 AND revision < $2 AND written_at <= $3 AND written_at >= $4 ORDER BY written_at DESC, revision DESC LIMIT 1`
	// kv_marks by primary key.
	qMarkedLast  = `SELECT coalesce(max(second), 0) FROM kv_marks WHERE second <= $1`
	qMarkedOld   = `SELECT coalesce((SELECT revision FROM kv_marks WHERE second < $1 AND revision < coalesce((SELECT min(revision) FROM kv_marks WHERE second >= $1 AND second <= $2), 9223372036854775807) ORDER BY second DESC LIMIT 1), 0)`
	qMark        = `INSERT INTO kv_marks (second, revision) SELECT * FROM unnest($1::int8[], $2::int8[]) ON CONFLICT (second) DO UPDATE SET revision = greatest(kv_marks.revision, excluded.revision)`
	qMarked      = `SELECT coalesce((SELECT revision FROM kv_marks WHERE second < $1 ORDER BY second DESC LIMIT 1), 0)`
	qMarkRow     = `INSERT INTO kv_marks (second, revision) SELECT floor(extract(epoch FROM written_at))::int8, revision FROM kv WHERE revision = $1 ON CONFLICT (second) DO UPDATE SET revision = greatest(kv_marks.revision, excluded.revision)`
	qMarkSeconds = `SELECT min(second), max(second) FROM kv_marks`
	qForgetMarks = `DELETE FROM kv_marks WHERE revision < $1 AND second <= (SELECT max(second) FROM (SELECT second, revision FROM kv_marks ORDER BY second LIMIT $2) m WHERE revision < $1)`

	changeColumns = `k.revision, k.resource, k.namespace, k.name, k.created_revision, k.superseded_revision, k.deleted, k.value, k.expires_at, k.written_at, p.revision`
	changeJoin    = ` FROM kv k LEFT JOIN kv p ON p.superseded_revision = k.revision AND p.revision < k.revision` +
		` WHERE k.revision > $1 AND k.revision <= $2 ORDER BY k.revision`
	// kv by primary key, joined with kv_ended for what each revision replaced.
	qChanges     = `SELECT ` + changeColumns + `, NULL::bytea` + changeJoin
	qChangesPrev = `SELECT ` + changeColumns + `, p.value` + changeJoin

	// kv by primary key.
	qLastChanges = `SELECT resource, max(revision) FROM kv WHERE revision > $1 AND revision <= $2 GROUP BY resource`
	// kv by primary key.
	qWrittenAt = `SELECT written_at FROM kv WHERE revision = $1`
	// kv_expiring.
	qExpired = `SELECT ` + columns + ` FROM kv WHERE superseded_revision IS NULL AND expires_at IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2`
	// kv_ended, then kv by primary key.
	qTrim = `WITH gone AS (DELETE FROM kv WHERE revision IN (SELECT revision FROM kv WHERE superseded_revision >= $3 AND superseded_revision <= $1 ORDER BY superseded_revision LIMIT $2)
  RETURNING superseded_revision) SELECT count(*), coalesce(max(superseded_revision), 0) FROM gone`

	// kv_lead by primary key. A lead is taken if no process has it, or if its row is as it was when it was last seen; if
	// that is because the holder's session is gone ($6), its lock must be free. until is for people to read.
	qLead = `INSERT INTO kv_lead (name, holder, until) VALUES ($1, $2, clock_timestamp() + $3::interval) ON CONFLICT (name) DO NOTHING RETURNING 1`
	// It waits for no transaction of the holder, as all writers wait for it: the next attempt takes the lead.
	qTakeLead = `UPDATE kv_lead SET holder = $2, until = clock_timestamp() + $3::interval
FROM (SELECT k.name FROM kv_lead k WHERE k.name = $1 AND k.holder = $4 AND k.until = $5 FOR UPDATE OF k SKIP LOCKED) free
WHERE kv_lead.name = free.name AND (NOT $6::bool OR pg_try_advisory_xact_lock($7::int8)) RETURNING 1`
	// The rows are locked in one order, as other transactions lock some of them too. Neither waits for the other: a transaction
	// on behalf of a lead (qLeader) may take longer than a lead lasts, and only keeps other processes from taking it.
	qRenewLeads = `UPDATE kv_lead SET until = clock_timestamp() + $3::interval
FROM (SELECT k.name FROM kv_lead k JOIN unnest($1::text[], $2::text[]) n (name, holder) ON k.name = n.name AND k.holder = n.holder ORDER BY k.name FOR NO KEY UPDATE OF k) own
WHERE kv_lead.name = own.name RETURNING kv_lead.name`
	qAsynchronous = `SET LOCAL synchronous_commit = off`
	qLeaders      = `SELECT name, holder, until, ` + waitsForStandby + ` FROM kv_lead ORDER BY name`
	qSynchronous  = `SELECT ` + waitsForStandby
	qLeader       = `SELECT holder FROM kv_lead WHERE name = $1 FOR KEY SHARE`
	qLeaderWaits  = `SET LOCAL idle_in_transaction_session_timeout = %d`
	qUnlead       = `DELETE FROM kv_lead WHERE name = $1 AND holder = $2`
	// In a batch, behind the writers' lock, which each change of a holder takes: it ends the batch (division by zero) if one of
	// the leads is another process's.
	qLeadsStand = `SELECT 1 / (NOT EXISTS (` + leadsLost + `))::int`
	qLeadsLost  = leadsLost
	leadsLost   = `SELECT n.name, n.holder FROM unnest($1::text[], $2::text[]) n (name, holder) WHERE NOT EXISTS (SELECT FROM kv_lead k WHERE k.name = n.name AND k.holder = n.holder)`
	// Advisory locks: that of the session of each process that leads, and which of these are free.
	qSession      = `SELECT pg_advisory_lock_shared($1::int8)`
	qSessionsGone = `SELECT n FROM unnest($1::int8[]) n WHERE pg_try_advisory_xact_lock(n)`

	// A notification is worth no flush of its own. It names its sender, who need not hear it.
	qNotify = `BEGIN; SET LOCAL synchronous_commit = off; NOTIFY rowlock, '%s'; COMMIT`
	qListen = `LISTEN rowlock`
	// By process: few rows. Ends a session of this server that waits for its client, which has given it up. (One that commits
	// may wait for a standby: if it was ended, its changes would be seen before the standby has them.) A pooler
	// gives its clients numbers of 32 bits, which are no process and too large for an integer.
	qTerminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::bigint AND application_name = $2 AND datname = current_database() AND wait_event_type = 'Client'`

	// Whole-table reads for operators, never on a request's path.
	qSizes = `SELECT (SELECT count(*) FROM kv WHERE superseded_revision IS NULL), (SELECT count(*) FROM kv WHERE superseded_revision IS NOT NULL),
  (SELECT written_at FROM kv ORDER BY revision LIMIT 1), pg_total_relation_size('kv') + pg_total_relation_size('kv_meta') + pg_total_relation_size('kv_packed') + pg_total_relation_size('kv_marks'), current_setting('server_version'),
  (SELECT word FROM kv_meta WHERE key = 'cluster_id')`
	qPacks  = `SELECT count(*), coalesce(sum(count), 0), min(written_at) FROM kv_packed`
	qCounts = `SELECT resource, count(*), sum(length(value)) FROM kv WHERE superseded_revision IS NULL GROUP BY resource ORDER BY resource`
	// After a migration: a role that has rights on kv, and none at all on another table of its owner in that schema, is granted the same
	// there, so that the role that serves need not own the tables. Few rows of the catalogue.
	qHandRights = `DO $$
DECLARE missing record;
BEGIN
    FOR missing IN
        SELECT t.oid::regclass AS target, string_agg(DISTINCT a.privilege_type, ', ') AS rights, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM pg_class k CROSS JOIN LATERAL aclexplode(k.relacl) a
        JOIN pg_class t ON t.relnamespace = k.relnamespace AND t.relowner = k.relowner AND t.relkind IN ('r', 'p')
            AND (starts_with(t.relname, 'kv_') AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') OR t.relname = 'schema_migrations' AND a.privilege_type = 'SELECT')
        WHERE k.oid = to_regclass('kv') AND a.grantee <> k.relowner AND NOT EXISTS (SELECT FROM aclexplode(t.relacl) h WHERE h.grantee = a.grantee)
        GROUP BY t.oid, a.grantee
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', missing.rights, missing.target, missing.grantee);
    END LOOP;
END
$$`
	qSchema = `SELECT version, dirty FROM schema_migrations`
	// Settings.
	qDataChecksums = `SELECT current_setting('data_checksums')`
	qTable         = `SELECT to_regclass('schema_migrations') IS NOT NULL`
)
