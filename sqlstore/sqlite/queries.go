package sqlite

// Every statement of the driver, with the index that it needs. Tests hold each
// against EXPLAIN QUERY PLAN.
const (
	qBegin    = `BEGIN IMMEDIATE`
	qBeginRO  = `BEGIN`
	qCommit   = `COMMIT`
	qRollback = `ROLLBACK`

	columns = `revision, resource, namespace, name, created_revision, superseded_revision, deleted, value, expires_at, written_at, checksum`

	// kv_meta by primary key.
	qBounds       = `SELECT (SELECT value FROM kv_meta WHERE key = 'floor'), (SELECT value FROM kv_meta WHERE key = 'revision')`
	qRevision     = `SELECT value FROM kv_meta WHERE key = 'revision'`
	qSetRevision  = `UPDATE kv_meta SET value = ? WHERE key = 'revision'`
	qSetBatch     = `UPDATE kv_meta SET value = ? WHERE key = 'batch'`
	qBatch        = `SELECT value FROM kv_meta WHERE key = 'batch'`
	qRaiseFloor   = `UPDATE kv_meta SET value = ?1 WHERE key = 'floor' AND value < ?1`
	qCompatible   = `UPDATE kv_meta SET value = ?2 WHERE key = 'schema_compatible' AND value = ?1`
	qSetClusterID = `UPDATE kv_meta SET value = ? WHERE key = 'cluster_id'`
	qClusterID    = `SELECT value FROM kv_meta WHERE key = 'cluster_id'`
	// The epoch, and the keys of the cache files that the database attests to.
	qCacheFiles    = `SELECT value FROM kv_meta WHERE key = 'cache_files'`
	qSetCacheFiles = `INSERT INTO kv_meta (key, value) VALUES ('cache_files', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	// The revisions that are reserved for relaxed commits, and the run of the machine in which they were.
	qReserved  = `SELECT (SELECT value FROM kv_meta WHERE key = 'relaxed'), (SELECT value FROM kv_meta WHERE key = 'boot')`
	qReserve   = `INSERT INTO kv_meta (key, value) VALUES ('relaxed', ?) ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)`
	qBoot      = `INSERT INTO kv_meta (key, value) VALUES ('boot', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	qFence     = `UPDATE kv_meta SET value = ?1 WHERE key = 'schema_compatible' AND value < ?1`
	qUnreserve = `DELETE FROM kv_meta WHERE key = 'relaxed' AND value = ?`

	// kv by primary key; maintains all indexes.
	qInsert = `INSERT INTO kv (` + columns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// kv by primary key. The key columns are compared, not searched.
	qExpected = `SELECT created_revision FROM kv WHERE revision = ? AND superseded_revision IS NULL AND resource = ? AND namespace = ? AND name = ?`
	// kv by primary key. Not one statement with the above: RETURNING costs a
	// temporary table and a statement journal, three times the update itself.
	qSupersede = `UPDATE kv SET superseded_revision = ? WHERE revision = ?`
	// kv_live.
	qLive = `SELECT ` + columns + ` FROM kv WHERE resource = ? AND namespace = ? AND name = ? AND superseded_revision IS NULL`
)

// Packs. Those of one key are in the order of until_revision, and older than its rows in kv.
const (
	packColumns = `resource, namespace, name, first_revision, until_revision, created_revision, deleted, count, written_at, value`
	ofKey       = ` WHERE resource = ?2 AND namespace = ?3 AND name = ?4`

	// kv_meta by primary key.
	qNote      = `SELECT value FROM kv_meta WHERE key = 'note:' || ?`
	qSetNote   = `INSERT INTO kv_meta (key, value) VALUES ('note:' || ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	qFloors    = `SELECT value FROM kv_meta WHERE key = 'past'`
	qSetFloors = `INSERT INTO kv_meta (key, value) VALUES ('past', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`

	// kv_packed_past: the first pack of a key that ended after a revision; those before one,
	// backwards; the last one.
	qPacked      = `SELECT ` + packColumns + `, rowid FROM kv_packed INDEXED BY kv_packed_past` + ofKey + ` AND until_revision > ?1 ORDER BY until_revision LIMIT 1`
	qPackedHead  = `SELECT rowid, first_revision FROM kv_packed INDEXED BY kv_packed_past` + ofKey + ` AND until_revision > ?1 ORDER BY until_revision LIMIT 1`
	qPackedBelow = `SELECT ` + packColumns + `, rowid FROM kv_packed INDEXED BY kv_packed_past` + ofKey + ` AND until_revision < ?1 AND until_revision > ?5 ORDER BY until_revision DESC LIMIT ?6`
	// kv_packed by primary key.
	qPackedRow = `SELECT ` + packColumns + `, rowid FROM kv_packed WHERE rowid = ?`
	// kv_packed_past: the next key that has packs.
	nextPacked           = `SELECT resource, namespace, name FROM kv_packed INDEXED BY kv_packed_past WHERE ?1 = ?1`
	packedOrder          = ` ORDER BY resource, namespace, name LIMIT 1`
	qNextPackedAll       = nextPacked + inAll + packedOrder
	qNextPackedResource  = nextPacked + inResource + packedOrder
	qNextPackedNamespace = nextPacked + inNamespace + packedOrder

	// kv_past: the next key that has ended rows; those of one key that ended in a range, oldest first.
	qNextEnded = `SELECT resource, namespace, name FROM kv INDEXED BY kv_past WHERE superseded_revision IS NOT NULL AND (resource, namespace, name) > (?, ?, ?)` + packedOrder
	qEndedRows = `SELECT ` + columns + ` FROM kv INDEXED BY kv_past` + ofKey + ` AND superseded_revision IS NOT NULL AND superseded_revision >= ?1 AND superseded_revision <= ?5 AND revision > ?7 ORDER BY superseded_revision, revision LIMIT ?6`
	// kv by primary key.
	qUnkeep  = `DELETE FROM kv WHERE revision = ? AND superseded_revision = ? AND CAST(value AS BLOB) = ?`
	qRestate = `UPDATE kv SET value = ?, checksum = ? WHERE revision = ? AND superseded_revision IS NOT NULL`
	// kv_packed_past.
	qDropPack = `DELETE FROM kv_packed INDEXED BY kv_packed_past` + ofKey + ` AND until_revision = ?1 AND CAST(value AS BLOB) = ?5`
	// Maintains the indexes of kv_packed.
	qInsertPack = `INSERT INTO kv_packed (` + packColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// kv_packed by primary key.
	qExtendPack = `UPDATE kv_packed SET until_revision = ?, deleted = ?, count = ?, value = ? WHERE rowid = ? AND until_revision = ? AND CAST(value AS BLOB) = ?`

	// kv_packed_ended: the next resource that has packs, and the sizes of its oldest packs, which are then deleted.
	qNextForget  = `SELECT resource FROM kv_packed INDEXED BY kv_packed_ended WHERE resource > ? ORDER BY resource LIMIT 1`
	qForgettable = `SELECT octet_length(value) FROM kv_packed INDEXED BY kv_packed_ended` + oldestPacks
	qForget      = `DELETE FROM kv_packed WHERE rowid IN (SELECT rowid FROM kv_packed INDEXED BY kv_packed_ended` + oldestPacks + `)`
	oldestPacks  = ` WHERE resource = ? AND until_revision <= ? ORDER BY until_revision LIMIT ?`

	// kv by primary key.
	qSeconds = `SELECT written_at / 1000000, max(revision) FROM kv WHERE revision > ? AND revision <= ? GROUP BY 1`
	// Times go back where clocks were set: the first row of a time, and the newest row before another one.
	qYoung  = `SELECT revision FROM kv WHERE revision > ? AND revision <= ? AND written_at > ? AND written_at <= ? ORDER BY revision LIMIT 1`
	qOldest = `SELECT revision, written_at FROM kv WHERE revision > ? AND revision < ? AND written_at <= ? AND written_at >= ? ORDER BY written_at DESC, revision DESC LIMIT 1`
	// kv_marks by primary key.
	qMarkedLast  = `SELECT max(second) FROM kv_marks WHERE second <= ?`
	qMarkedOld   = `SELECT revision FROM kv_marks WHERE second < ?1 AND revision < coalesce((SELECT min(revision) FROM kv_marks WHERE second >= ?1 AND second <= ?2), 9223372036854775807) ORDER BY second DESC LIMIT 1`
	qMark        = `INSERT INTO kv_marks (second, revision) VALUES (?1, ?2) ON CONFLICT (second) DO UPDATE SET revision = max(revision, excluded.revision)`
	qMarked      = `SELECT revision FROM kv_marks WHERE second < ? ORDER BY second DESC LIMIT 1`
	qMarkRow     = `INSERT INTO kv_marks (second, revision) SELECT written_at / 1000000, revision FROM kv WHERE revision = ? ON CONFLICT (second) DO UPDATE SET revision = max(revision, excluded.revision)`
	qMarkSeconds = `SELECT (SELECT min(second) FROM kv_marks), (SELECT max(second) FROM kv_marks)`
	qForgetMarks = `DELETE FROM kv_marks WHERE revision < ?1 AND second <= (SELECT max(second) FROM (SELECT second, revision FROM kv_marks ORDER BY second LIMIT ?2) WHERE revision < ?1)`
)

// Large values: kv_large has a row for each, whose revision is NULL until a row of kv has the value, and 0 when none has it any more.
const (
	// Maintains kv_large_revision. The new row's id is SQLite's last rowid.
	qBeginLarge = `INSERT INTO kv_large (revision, begun_at) VALUES (?, ?)`
	qLargeBegun = `SELECT last_insert_rowid()`
	// kv_large by primary key.
	qLargeUnheld = `SELECT EXISTS (SELECT 1 FROM kv_large WHERE id = ? AND revision IS NULL)`
	qHoldLarge   = `UPDATE kv_large SET revision = ?2 WHERE id = ?1 AND revision IS NULL`
	qAbandon     = `UPDATE kv_large SET revision = 0 WHERE id = ? AND revision IS NULL`
	qDeleteLarge = `DELETE FROM kv_large WHERE id = ? AND revision = 0`
	// kv_large_revision.
	qDropLarge  = `UPDATE kv_large SET revision = 0 WHERE revision = ?`
	qAbandonOld = `UPDATE kv_large SET revision = 0 WHERE revision IS NULL AND begun_at NOT BETWEEN ? AND ?`
	qDropped    = `SELECT id FROM kv_large WHERE revision = 0 ORDER BY id LIMIT 1`
	qUnswept    = `SELECT EXISTS (SELECT 1 FROM kv_large WHERE revision = 0 OR revision IS NULL AND begun_at NOT BETWEEN ? AND ?)`
	// The first entry of an index, if there is one.
	qAnyLarge = `SELECT EXISTS (SELECT 1 FROM kv_large)`
	// kv_large_revision for each row that qTrim deletes.
	qTrimLarge = `UPDATE kv_large SET revision = 0 WHERE revision IN (SELECT revision FROM kv INDEXED BY kv_ended WHERE superseded_revision <= ? ORDER BY superseded_revision LIMIT ?)`
	// kv_pieces by the index of its primary key.
	qAddPiece    = `INSERT INTO kv_pieces (large, piece, data) VALUES (?, ?, ?)`
	qPieces      = `SELECT piece, data FROM kv_pieces WHERE large = ? ORDER BY piece`
	qPiecesBytes = `SELECT count(*), coalesce(sum(length(data)), 0) FROM kv_pieces WHERE large = ?`
	// ..., and kv_large by primary key: pieces of a value that no row has any more.
	qDeletePieces = `DELETE FROM kv_pieces WHERE rowid IN (SELECT rowid FROM kv_pieces WHERE large = ?1 AND EXISTS (SELECT 1 FROM kv_large WHERE id = ?1 AND revision = 0) LIMIT ?2)`
	// kv_live.
	qLiveRevision = `SELECT revision FROM kv WHERE resource = ? AND namespace = ? AND name = ? AND superseded_revision IS NULL`
	// kv by primary key.
	qHasEnded    = `SELECT EXISTS (SELECT 1 FROM kv WHERE revision = ? AND superseded_revision IS NOT NULL)`
	qUnkeepLarge = `DELETE FROM kv WHERE revision = ? AND superseded_revision = ? AND typeof(value) = 'integer'`
)

// Reading pages. Each shape of request has its own text, so that each uses its index fully.
const (
	live  = ` superseded_revision IS NULL`
	ended = ` superseded_revision IS NOT NULL AND superseded_revision > ?1 AND revision <= ?1`

	// The range that a page starts behind, by how much of the key is given.
	inAll       = ` AND (resource, namespace, name) > (?2, ?3, ?4) AND (?5 = '' OR namespace = ?5)`
	inResource  = ` AND resource = ?2 AND (namespace, name) > (?3, ?4)`
	inNamespace = ` AND resource = ?2 AND namespace = ?3 AND name > ?4`

	order = ` ORDER BY resource, namespace, name LIMIT ?6`

	// kv_live, in its order. ?1 is the snapshot's revision, or the greatest integer.
	qLiveAll       = `SELECT ` + columns + ` FROM kv WHERE` + live + ` AND revision <= ?1` + inAll + order
	qLiveResource  = `SELECT ` + columns + ` FROM kv WHERE` + live + ` AND revision <= ?1` + inResource + order
	qLiveNamespace = `SELECT ` + columns + ` FROM kv WHERE` + live + ` AND revision <= ?1` + inNamespace + order

	// kv_ended, then sorted; reads what ended since the snapshot, so it is for
	// snapshots a little way back. Values are fetched for the page alone.
	qEndedAll       = `SELECT revision, resource, namespace, name FROM kv INDEXED BY kv_ended WHERE` + ended + inAll + order
	qEndedResource  = `SELECT revision, resource, namespace, name FROM kv INDEXED BY kv_ended WHERE` + ended + inResource + order
	qEndedNamespace = `SELECT revision, resource, namespace, name FROM kv INDEXED BY kv_ended WHERE` + ended + inNamespace + order

	// kv by primary key: the rows written within a span of revisions that held at one.
	qWhole = `SELECT ` + columns + ` FROM kv WHERE revision > ?1 AND revision <= ?2` +
		` AND (superseded_revision IS NULL OR superseded_revision > ?3) ORDER BY revision LIMIT ?4`
	// kv_live: revisions of a range of keys, of no column that would have rows fetched. kv_ended: those of what ended since a revision.
	qListRevisions = `SELECT revision FROM kv INDEXED BY kv_live WHERE superseded_revision IS NULL AND (resource, namespace, name) > (?1, ?2, ?3)` +
		` AND (resource, namespace, name) <= (?4, ?5, ?6) AND revision <= ?7`
	qListEnded = `SELECT revision FROM kv INDEXED BY kv_ended WHERE superseded_revision IS NOT NULL AND superseded_revision > ?1 AND revision <= ?1`
	// kv_live and kv_ended alone: how many rows they have at a revision, ?1, and the sum of their revisions modulo ?2.
	indexed       = `SELECT count(*), sum(revision % ?2) FROM kv INDEXED BY `
	qIndexedLive  = indexed + `kv_live WHERE superseded_revision IS NULL AND +revision <= ?1`
	qIndexedEnded = indexed + `kv_ended WHERE superseded_revision IS NOT NULL AND superseded_revision > ?1 AND +revision <= ?1`
	// kv_live: the key that ends a page behind a key. kv by primary key: the revision that ends one behind a revision.
	qPageLive  = `SELECT resource, namespace, name FROM kv INDEXED BY kv_live WHERE superseded_revision IS NULL AND (resource, namespace, name) > (?1, ?2, ?3) ORDER BY resource, namespace, name LIMIT 1 OFFSET ?4`
	qPageTable = `SELECT revision FROM kv WHERE revision > ?1 ORDER BY revision LIMIT 1 OFFSET ?2`
	// kv_live within a page, with each entry's row by primary key: those that differ.
	qCheckLive = `SELECT i.revision, i.resource, i.namespace, i.name, CASE` +
		` WHEN t.revision IS NULL THEN 'an index has the row, but the table does not'` +
		` WHEN t.superseded_revision IS NOT NULL THEN 'the index kv_live has the row as a live one, but the table has it as one that ended'` +
		` ELSE 'the index kv_live has another key for the row' END, NULL FROM kv i INDEXED BY kv_live LEFT JOIN kv t NOT INDEXED ON t.revision = i.revision` +
		` WHERE i.superseded_revision IS NULL AND (i.resource, i.namespace, i.name) > (?1, ?2, ?3) AND (i.resource, i.namespace, i.name) <= (?4, ?5, ?6)` +
		` AND (t.revision IS NULL OR t.superseded_revision IS NOT NULL OR (i.resource, i.namespace, i.name) IS NOT (t.resource, t.namespace, t.name))`
	// kv by primary key within a page, with each row's entry in kv_live or kv_ended: those that have none.
	qCheckTable = `SELECT t.revision, t.resource, t.namespace, t.name,` +
		` CASE WHEN t.superseded_revision IS NULL THEN 'no index has the row, so it may have ended' ELSE 'the index kv_ended lacks the row' END, t.superseded_revision` +
		` FROM kv t NOT INDEXED WHERE t.revision > ?1 AND t.revision <= ?2 AND CASE WHEN t.superseded_revision IS NULL` +
		` THEN NOT EXISTS (SELECT 1 FROM kv i INDEXED BY kv_live WHERE i.superseded_revision IS NULL AND i.resource = t.resource AND i.namespace = t.namespace AND i.name = t.name AND i.revision = t.revision)` +
		` ELSE NOT EXISTS (SELECT 1 FROM kv i INDEXED BY kv_ended WHERE i.superseded_revision = t.superseded_revision AND i.revision = t.revision) END`
	// kv by primary key within a page: the rows that are not as they were written. rowlock_damage is a function of this driver.
	qCheckValues = `SELECT revision, resource, namespace, name, rowlock_damage(` + columns + `) AS damage, superseded_revision FROM kv WHERE revision > ?1 AND revision <= ?2 AND typeof(value) <> 'integer' AND damage IS NOT NULL`
	// kv by primary key within a page: the rows whose values are in pieces.
	qCheckLarge = `SELECT ` + columns + ` FROM kv WHERE revision > ?1 AND revision <= ?2 AND typeof(value) = 'integer'`
	// kv by primary key.
	qNewest = `SELECT coalesce(max(revision), 0) FROM kv`
	// kv by primary key.
	qRow = `SELECT ` + columns + ` FROM kv WHERE revision = ?`
	// kv_past. A key's versions hold one after another, so the first that ended
	// after a revision is the only one that can have held then.
	past       = ` superseded_revision IS NOT NULL AND superseded_revision > ?1 AND resource = ?2 AND namespace = ?3 AND name = ?4 ORDER BY superseded_revision LIMIT 1`
	qReadEnded = `SELECT * FROM (SELECT ` + columns + ` FROM kv INDEXED BY kv_past WHERE` + past + `) WHERE revision <= ?1`

	// kv_past, backwards: what ended above the floor, ?5, and below a revision. Of the rows
	// that ended at one revision, that of a delete is the newer.
	qPast = `SELECT ` + columns + ` FROM kv INDEXED BY kv_past WHERE superseded_revision IS NOT NULL AND superseded_revision > ?5 AND superseded_revision < ?1` +
		` AND resource = ?2 AND namespace = ?3 AND name = ?4 ORDER BY superseded_revision DESC, revision DESC LIMIT ?6`

	// kv_past, twice: the next key that has ended rows, and its row at a revision.
	nextPast = `SELECT k.resource, k.namespace, k.name, (SELECT revision FROM kv INDEXED BY kv_past WHERE superseded_revision IS NOT NULL AND superseded_revision > ?1` +
		` AND resource = k.resource AND namespace = k.namespace AND name = k.name ORDER BY superseded_revision LIMIT 1)` +
		` FROM kv k INDEXED BY kv_past WHERE k.superseded_revision IS NOT NULL`
	nextOrder          = ` ORDER BY k.resource, k.namespace, k.name LIMIT 1`
	qNextPastAll       = nextPast + ` AND (k.resource, k.namespace, k.name) > (?2, ?3, ?4) AND (?5 = '' OR k.namespace = ?5)` + nextOrder
	qNextPastResource  = nextPast + ` AND k.resource = ?2 AND (k.namespace, k.name) > (?3, ?4)` + nextOrder
	qNextPastNamespace = nextPast + ` AND k.resource = ?2 AND k.namespace = ?3 AND k.name > ?4` + nextOrder

	changeColumns = `k.revision, k.resource, k.namespace, k.name, k.created_revision, k.superseded_revision, k.deleted, k.value, k.expires_at, k.written_at, k.checksum, p.revision`
	changeJoin    = ` FROM kv k LEFT JOIN kv p INDEXED BY kv_ended ON p.superseded_revision = k.revision AND p.revision < k.revision` +
		` WHERE k.revision > ? ORDER BY k.revision LIMIT ?`
	// kv by primary key, joined with kv_ended for what each revision replaced.
	qChanges     = `SELECT ` + changeColumns + changeJoin
	qChangesPrev = `SELECT ` + changeColumns + `, p.resource, p.namespace, p.name, p.created_revision, p.superseded_revision, p.deleted, p.value, p.expires_at, p.written_at, p.checksum` + changeJoin
	// kv by primary key.
	qLastChanges = `SELECT resource, max(revision) FROM kv WHERE revision > ? AND revision <= ? GROUP BY resource`

	// kv by primary key.
	qWrittenAt = `SELECT written_at FROM kv WHERE revision = ?`
	qNewestAt  = `SELECT written_at FROM kv WHERE revision > 0 ORDER BY revision DESC LIMIT 1`
	// kv_expiring.
	qExpired = `SELECT ` + columns + ` FROM kv WHERE superseded_revision IS NULL AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?`
	// kv_ended, then kv by primary key: the sizes of the values that qTrim would delete.
	qTrimmable = `SELECT length(value) FROM kv INDEXED BY kv_ended WHERE superseded_revision <= ? ORDER BY superseded_revision LIMIT ?`
	// kv_ended.
	qTrim = `DELETE FROM kv WHERE revision IN (SELECT revision FROM kv INDEXED BY kv_ended WHERE superseded_revision <= ? ORDER BY superseded_revision LIMIT ?)`

	// Whole-table reads for operators, never on a request's path.
	qSizes  = `SELECT (SELECT count(*) FROM kv WHERE superseded_revision IS NULL), (SELECT count(*) FROM kv WHERE superseded_revision IS NOT NULL), (SELECT min(written_at) FROM kv)`
	qPacks  = `SELECT count(*), coalesce(sum(count), 0), min(written_at) FROM kv_packed`
	qCounts = `SELECT resource, count(*), sum(CASE WHEN typeof(value) = 'integer' THEN (SELECT coalesce(sum(length(data)), 0) FROM kv_pieces WHERE large = kv.value) ELSE length(value) END) FROM kv WHERE superseded_revision IS NULL GROUP BY resource ORDER BY resource`
)
