package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlock/rowlock/sqlstore"
)

// SetFar makes snapshots deeper than depth be read key by key.
func (d *Driver) SetFar(depth int64) { d.far = depth }

// SetPendingPID changes which process the batch without an outcome was sent to.
func (d *Driver) SetPendingPID(pid uint32) { d.pending.pid = pid }

// Explain shows a statement's generic plan, with NULL for each argument, under the
// settings of the driver's sessions and what statements before it set.
func (d *Driver) Explain(ctx context.Context, query string, args int, before ...string) (plan string, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, sql := range before {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "PREPARE explained AS "+query, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL,", args), ",")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		rows, err := tx.Query(ctx, "EXPLAIN EXECUTE explained"+nulls, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "DEALLOCATE explained")
		return err
	})
	return plan, err
}

// Statements are the statements of queries.go that are planned, by name.
var Statements = map[string]string{
	"qYoung": qYoung, "qOldest": qOldest, "qMarkedLast": qMarkedLast, "qMarkedOld": qMarkedOld, "qNote": qNote, "qNewNote": qNewNote, "qSetNote": qSetNote, "qFloors": qFloors, "qSetFloors": qSetFloors, "qPacked": qPacked, "qPackedBelow": qPackedBelow, "qPackedAll": qPackedAll, "qPackedResource": qPackedResource, "qPackedNamespace": qPackedNamespace, "qNextPacked": qNextPacked, "qNextEnded": qNextEnded, "qEndedRows": qEndedRows, "qUnkeep": qUnkeep, "qRestate": qRestate, "qInsertPacks": qInsertPacks, "qDropPack": qDropPack, "qNextForget": qNextForget, "qForget": qForget, "qSeconds": qSeconds, "qMark": qMark, "qMarked": qMarked, "qMarkRow": qMarkRow, "qMarkSeconds": qMarkSeconds, "qForgetMarks": qForgetMarks,
	"qBounds": qBounds, "qBoundsNow": qBoundsNow, "qLock": qLock, "qLockFloors": qLockFloors, "qLockAlive": qLockAlive, "qAlive": qAlive, "qRevive": qRevive, "qCluster": qCluster, "qPlace": qPlace, "qPlaceBare": qPlaceBare, "qSetLine": qSetLine, "qReserve": qReserve, "qRelax": qRelax, "qFence": qFence, "qFlush": qFlush, "qSetRevision": qSetRevision, "qSetClusterID": qSetClusterID, "qRaiseFloor": qRaiseFloor, "qCompatible": qCompatible,
	"qMarker": qMarker, "qSetMarker": qSetMarker, "qNewMarker": qNewMarker, "qDropMarker": qDropMarker,
	"qWave": qWave, "qWritten": qWritten,
	"qLiveAll": qLiveAll, "qLiveResource": qLiveResource, "qLiveNamespace": qLiveNamespace,
	"qEndedAll": qEndedAll, "qEndedResource": qEndedResource, "qEndedNamespace": qEndedNamespace,
	"qPastAll": qPastAll, "qPastResource": qPastResource, "qPastNamespace": qPastNamespace,
	"qLive": qLive, "qReadEnded": qReadEnded, "qPast": qPast, "qChanges": qChanges, "qChangesPrev": qChangesPrev,
	"qWrittenAt": qWrittenAt, "qLastChanges": qLastChanges, "qExpired": qExpired, "qTrim": qTrim, "qLead": qLead, "qTakeLead": qTakeLead, "qRenewLeads": qRenewLeads, "qLeaders": qLeaders, "qSynchronous": qSynchronous, "qLeader": qLeader, "qUnlead": qUnlead, "qLeadsStand": qLeadsStand, "qLeadsLost": qLeadsLost,
	"qCacheFiles": qCacheFiles, "qLockCacheFiles": qLockCacheFiles, "qCacheFilesRow": qCacheFilesRow, "qSetCacheFiles": qSetCacheFiles, "qListRevisions": qListRevisions, "qWholeRows": qWholeRows,
	"qWhole": qWhole, "qWholeSettings": qWholeSettings,
}

// Sessions counts the sessions that the pool has made so far.
func (d *Driver) Sessions() int64 { return d.pool.Stat().NewConnsCount() }

// Clock shows the clock to tests.
type Clock struct{ clock }

func NewClock() *Clock { return &Clock{} }

func (c *Clock) Now() time.Time                          { return c.now() }
func (c *Clock) Update(there, asked, answered time.Time) { c.update(there, asked, answered) }

// PackAround packs once, and calls between after it has read.
func (d *Driver) PackAround(ctx context.Context, between func()) error {
	var u units
	err := d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) error {
		return u.gather(ctx, tx, b, f, sqlstore.Cursor{}, 64, &sqlstore.Packed{})
	})
	if err != nil {
		return err
	}
	between()
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return u.write(ctx, tx) })
}

// RelaxUnflushed relaxes commits of resources, and leaves it to PostgreSQL to flush them.
func (d *Driver) RelaxUnflushed(resources []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.relaxed = sqlstore.NewRelaxed(resources, nil)
}

// InTime has the disk have all that was relaxed.
func (d *Driver) InTime() { d.relaxed.Durable() }

// ErrorOf returns the error of an answer of PostgreSQL.
func ErrorOf(answer *pgconn.PgError) error { return translate(answer) }

// Setting returns the value of a setting in a session of the pool.
func (d *Driver) Setting(ctx context.Context, name string) (value string, err error) {
	err = d.pool.QueryRow(ctx, "SELECT coalesce(current_setting($1, true), '')", name).Scan(&value)
	return value, err
}

// InTransaction returns a setting in a transaction that is set up as those of the driver are, and in the same session afterwards.
func (d *Driver) InTransaction(ctx context.Context, name string) (inside, after string, err error) {
	err = d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		b := &pgx.Batch{}
		b.Queue(qBegin)
		d.queueSettings(b)
		b.Queue("SELECT current_setting($1)", name).QueryRow(func(row pgx.Row) error { return row.Scan(&inside) })
		b.Queue(qCommit)
		if err := transact(ctx, c.Conn(), b); err != nil {
			return err
		}
		return c.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&after)
	})
	return inside, after, err
}

// Place identifies the database in use.
func (d *Driver) Place() string { return d.lineage.known.identity.String() }

// Reconnect gives up all connections.
func (d *Driver) Reconnect() { d.pool.Reset() }

// Synchronous reports whether commits wait for a standby, as far as known.
func (d *Driver) Synchronous() bool { return d.lineage.synchronous.Load() }

// Change runs a transaction of a method of History.
func (d *Driver) Change(ctx context.Context, fn func() error) error {
	return d.change(ctx, func(pgx.Tx) error { return fn() })
}

// Occupy acquires all connections of the pool that come free within a while.
func (d *Driver) Occupy(ctx context.Context) (free func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	var all []*pgxpool.Conn
	free = func() {
		for _, c := range all {
			c.Release()
		}
	}
	for {
		c, err := d.pool.Acquire(ctx)
		if err != nil && ctx.Err() != nil {
			return free, nil
		}
		if err != nil {
			free()
			return nil, err
		}
		all = append(all, c)
	}
}

// CheckPrimaries asks all hosts of the URL.
func (d *Driver) CheckPrimaries(ctx context.Context) { d.checkPrimaries(ctx) }

// MigrateUp makes or updates the schema of a database, without what Open writes into it besides.
func MigrateUp(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return up(ctx, conn)
}
