package sqlite

import (
	"context"
	"database/sql/driver"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// Explain returns the plan of a statement as the driver's own connection makes it.
func (d *Driver) Explain(query string) (string, error) {
	return d.explain("EXPLAIN QUERY PLAN "+query, 3)
}

// Opcodes returns the names of the instructions that a statement becomes.
func (d *Driver) Opcodes(query string) (string, error) {
	return d.explain("EXPLAIN "+query, 1)
}

func (d *Driver) explain(query string, column int) (string, error) {
	w, unlock, err := d.lockWriter()
	if err != nil {
		return "", err
	}
	defer unlock()
	// The planner looks at the text alone, so any arguments do.
	raw, err := w.raw.Prepare(query)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	args := make([]driver.Value, 12)
	for i := range args {
		args[i] = int64(0)
	}
	rows, err := raw.Query(args)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan []string
	v := make([]driver.Value, len(rows.Columns()))
	for rows.Next(v) == nil {
		plan = append(plan, text(v[column]))
	}
	return strings.Join(plan, "; "), nil
}

// Spills returns whether the writer, whose lock may be held, writes pages to the log before a transaction ends.
func (d *Driver) Spills() (bool, error) {
	raw, err := d.writer.raw.Prepare("PRAGMA cache_spill") // anew: what it returns is decided then
	if err != nil {
		return false, err
	}
	defer raw.Close()
	rows, err := raw.Query(nil)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	v := make([]driver.Value, 1)
	err = rows.Next(v)
	return v[0] != int64(0), err
}

// SetFar makes snapshots deeper than depth be read key by key.
func (d *Driver) SetFar(depth int64) { d.far = depth }

// SetStagingRoom bounds the bytes of staged values.
func (d *Driver) SetStagingRoom(bytes int64) {
	d.staging.most = bytes
	if !d.staging.room.TryAcquire(stagedBytes - bytes) {
		panic("values are staged already")
	}
}

// StopReclaiming has the driver give no pages back until it has deleted something.
func (d *Driver) StopReclaiming() { d.spare.Store(false) }

// Reclaims reports whether the driver may give pages back.
func (d *Driver) Reclaims() bool { return d.spare.Load() }

// Begin holds the write lock as another process would.
func (d *Driver) Begin() (end func() error, err error) {
	c, err := connect(d.path, d.writerPragmas())
	if err != nil {
		return nil, err
	}
	if err := c.exec(qBegin); err != nil {
		return nil, err
	}
	return c.close, nil
}

// Statements are all statements of queries.go by name.
var Statements = map[string]string{
	"qBounds": qBounds, "qRevision": qRevision, "qSetRevision": qSetRevision, "qSetBatch": qSetBatch, "qBatch": qBatch, "qRaiseFloor": qRaiseFloor, "qCompatible": qCompatible, "qClusterID": qClusterID, "qSetClusterID": qSetClusterID,
	"qCacheFiles": qCacheFiles, "qSetCacheFiles": qSetCacheFiles, "qListRevisions": qListRevisions, "qListEnded": qListEnded, "qIndexedLive": qIndexedLive, "qIndexedEnded": qIndexedEnded, "qPageLive": qPageLive, "qPageTable": qPageTable, "qCheckLive": qCheckLive, "qCheckTable": qCheckTable, "qCheckValues": qCheckValues, "qNewest": qNewest,
	"qReserved": qReserved, "qReserve": qReserve, "qBoot": qBoot, "qFence": qFence, "qUnreserve": qUnreserve,
	"qInsert": qInsert, "qExpected": qExpected, "qSupersede": qSupersede, "qLive": qLive,
	"qLiveAll": qLiveAll, "qLiveResource": qLiveResource, "qLiveNamespace": qLiveNamespace,
	"qEndedAll": qEndedAll, "qEndedResource": qEndedResource, "qEndedNamespace": qEndedNamespace,
	"qNextPastAll": qNextPastAll, "qNextPastResource": qNextPastResource, "qNextPastNamespace": qNextPastNamespace,
	"qYoung": qYoung, "qOldest": qOldest, "qMarkedLast": qMarkedLast, "qMarkedOld": qMarkedOld, "qNote": qNote, "qSetNote": qSetNote, "qFloors": qFloors, "qSetFloors": qSetFloors, "qPacked": qPacked, "qPackedHead": qPackedHead, "qPackedBelow": qPackedBelow, "qPackedRow": qPackedRow, "qNextPackedAll": qNextPackedAll, "qNextPackedResource": qNextPackedResource, "qNextPackedNamespace": qNextPackedNamespace, "qNextEnded": qNextEnded, "qEndedRows": qEndedRows, "qUnkeep": qUnkeep, "qRestate": qRestate, "qDropPack": qDropPack, "qInsertPack": qInsertPack, "qExtendPack": qExtendPack, "qNextForget": qNextForget, "qForgettable": qForgettable, "qForget": qForget, "qSeconds": qSeconds, "qMark": qMark, "qMarked": qMarked, "qMarkRow": qMarkRow, "qMarkSeconds": qMarkSeconds, "qForgetMarks": qForgetMarks,
	"qBeginLarge": qBeginLarge, "qLargeBegun": qLargeBegun, "qLargeUnheld": qLargeUnheld, "qHoldLarge": qHoldLarge, "qAbandon": qAbandon, "qDeleteLarge": qDeleteLarge, "qDropLarge": qDropLarge, "qAbandonOld": qAbandonOld, "qDropped": qDropped, "qUnswept": qUnswept, "qAnyLarge": qAnyLarge, "qTrimLarge": qTrimLarge, "qAddPiece": qAddPiece, "qPieces": qPieces, "qPiecesBytes": qPiecesBytes, "qDeletePieces": qDeletePieces, "qLiveRevision": qLiveRevision, "qHasEnded": qHasEnded, "qUnkeepLarge": qUnkeepLarge, "qCheckLarge": qCheckLarge,
	"qWhole": qWhole, "qRow": qRow, "qReadEnded": qReadEnded, "qPast": qPast, "qChanges": qChanges, "qLastChanges": qLastChanges, "qChangesPrev": qChangesPrev, "qWrittenAt": qWrittenAt, "qNewestAt": qNewestAt, "qExpired": qExpired, "qTrim": qTrim, "qTrimmable": qTrimmable,
}

// PackAround packs once, and calls between after it has read.
func (d *Driver) PackAround(ctx context.Context, between func()) error {
	var units []pack.Unit
	err := d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) (err error) {
		units, err = gather(ctx, c, b, sqlstore.Cursor{}, 64, &sqlstore.Packed{})
		return err
	})
	if err != nil {
		return err
	}
	between()
	_, err = d.writing(ctx, func(w *conn) error {
		for i := range units {
			if err := writeUnit(w, &units[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// RelaxWith relaxes commits of resources with a sync of the test's.
func (d *Driver) RelaxWith(resources []string, sync func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.relax(resources, sync)
	d.loops.Go(func() { d.relaxed.Run(d.closing) })
}

// SyncFailed reports a failed sync.
func (d *Driver) SyncFailed(err error) { d.relaxed.Fail(err) }

// Synchronous returns the setting of the last commit: 2 if it waited for the disk, 1 if for the system alone.
func (d *Driver) Synchronous() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writer.number("PRAGMA synchronous")
}

// FailCommit has the sync of the next commit fail.
func (d *Driver) FailCommit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync(qCommit, func() {})
}

// FailReplacedCommit has the sync of the next commit fail, and that of the commit that is to replace it.
func (d *Driver) FailReplacedCommit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync(qCommit, func() { d.failSync(qSetBatch, func() {}) })
}

// failSync has a sync of the next call of a statement fail, and then calls then.
func (d *Driver) failSync(query string, then func()) {
	real, err := d.writer.prepare(query)
	if err != nil {
		panic(err)
	}
	d.writer.stmts[query] = failing{Stmt: real, err: driverError(sqlite3.SQLITE_IOERR_FSYNC), once: func() {
		d.writer.stmts[query] = real
		then()
	}}
}

type failing struct {
	driver.Stmt
	err  error
	once func()
}

// OnCommit calls then after each commit from here on.
func (d *Driver) OnCommit(then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	commit, err := d.writer.prepare(qCommit)
	if err != nil {
		panic(err)
	}
	d.writer.stmts[qCommit] = following{commit, then}
}

// AfterCommit calls then after the next commit, before the driver looks whether the file is still there.
func (d *Driver) AfterCommit(then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	commit, err := d.writer.prepare(qCommit)
	if err != nil {
		panic(err)
	}
	d.writer.stmts[qCommit] = following{commit, func() {
		d.writer.stmts[qCommit] = commit
		then()
	}}
}

type following struct {
	driver.Stmt
	then func()
}

func (f following) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := f.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	f.then()
	return result, err
}

func (f failing) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	f.once()
	return nil, f.err
}

// SyncFileWith has the file synced by the test.
func (d *Driver) SyncFileWith(sync func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncDB = sync
}

// SyncLogWith has the log synced by the test after each piece of a large value.
func (d *Driver) SyncLogWith(sync func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncWAL = sync
}

// Row returns the row of a revision, by a statement whose values are its reader's to keep.
func (d *Driver) Row(ctx context.Context, revision int64) (row sqlstore.Row, err error) {
	err = d.reader(ctx, func(c *conn) error {
		row, _, err = readRow(ctx, c, qRow, revision)
		return err
	})
	return row, err
}

// ErrorOf returns the error of a result code.
func ErrorOf(code int) error { return translate(driverError(code)) }

// driverError returns the error of SQLite's Go driver for a result code.
func driverError(code int) *sqlite.Error {
	err := new(sqlite.Error)
	for name, set := range map[string]func(reflect.Value){
		"code": func(v reflect.Value) { v.SetInt(int64(code)) },
		"msg":  func(v reflect.Value) { v.SetString("in SQLite's words") },
	} {
		field := reflect.ValueOf(err).Elem().FieldByName(name)
		set(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	}
	return err
}

// CreateGroups commits groups of creates as apply does, with the checksum of each row or without: then it is neither computed
// nor stored. It returns when n rows are written.
func (d *Driver) CreateGroups(groups [][]sqlstore.Op, summed bool) error {
	w, unlock, err := d.lockWriter()
	if err != nil {
		return err
	}
	defer unlock()
	for _, ops := range groups {
		if err := w.exec(qBegin); err != nil {
			return err
		}
		revision, err := w.number(qRevision)
		if err != nil {
			return err
		}
		at := time.Now().UnixMicro()
		for i := range ops {
			revision++
			k := &ops[i].Key
			var sum any
			if summed {
				sum = sqlstore.CompleteChecksum(d.sums.Partial(k.Resource, k.Namespace, k.Name, false, ops[i].Value, nil, at), revision, revision)
			}
			if err := w.exec(qInsert, revision, k.Resource, k.Namespace, k.Name, revision, nil, int64(0), ops[i].Value, nil, at, sum); err != nil {
				return err
			}
		}
		if err := record(w, revision, "bench"); err != nil {
			return err
		}
		if err := d.end(w); err != nil {
			return err
		}
		d.wroteLog()
	}
	return nil
}
