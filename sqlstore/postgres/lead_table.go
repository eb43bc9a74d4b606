package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlock/rowlock/sqlstore"
)

// Lead implements sqlstore.Driver. It waits only for the session of this process, and not long.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if d.closed() {
		return nil, nil, false, sqlstore.ErrClosed
	}
	held, release, ok, err := d.leads.lead(ctx, name)
	if err != nil {
		err = fmt.Errorf("leading %q: %w", name, err)
	}
	return held, release, ok, err
}

// kvLead is the leadTable of a driver.
type kvLead struct{ d *Driver }

func (k kvLead) look(ctx context.Context) (found map[string]row, gone map[int64]bool, err error) {
	d := k.d
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	waits := d.lineage.observe()
	rows, err := d.pool.Query(ctx, qLeaders)
	if err != nil {
		return nil, nil, err
	}
	found, gone = make(map[string]row), make(map[int64]bool)
	var synchronous bool
	var keys []int64
	var name string
	var r row
	own := leadSession(d.nonce)
	if _, err := pgx.ForEachRow(rows, []any{&name, &r.holder, &r.until, &synchronous}, func() error {
		found[name] = r
		if key, ok := sessionOf(r.holder); ok && key != own && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	if len(found) > 0 {
		waits(synchronous)
	}
	if len(keys) == 0 {
		return found, gone, nil
	}
	if rows, err = d.pool.Query(ctx, qSessionsGone, keys); err != nil {
		return nil, nil, err
	}
	var key int64
	_, err = pgx.ForEachRow(rows, []any{&key}, func() error { gone[key] = true; return nil })
	return found, gone, err
}

// take implements leadTable. It takes the writers' lock: earlier writes of a former holder are committed before, and no batch
// of that holder is committed afterwards.
func (k kvLead) take(ctx context.Context, all []*take) (err error) {
	d := k.d
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	b.Queue(qLock)
	for _, t := range all {
		count := func(rows pgx.Rows) error {
			for rows.Next() {
				t.taken = true
			}
			return rows.Err()
		}
		if t.over.holder == "" {
			b.Queue(qLead, t.name, t.holder, d.cfg.LeadFor).Query(count)
		} else {
			key, _ := sessionOf(t.over.holder)
			b.Queue(qTakeLead, t.name, t.holder, d.cfg.LeadFor, t.over.holder, t.over.until, t.session, key).Query(count)
		}
	}
	b.Queue(qCommit)
	return d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return transact(ctx, c.Conn(), b) })
}

// drop implements leadTable. A row that stays is taken once it has stood for long enough.
func (k kvLead) drop(name, holder string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, _ = k.d.pool.Exec(ctx, qUnlead, name, holder)
}

// transact sends a whole transaction at once.
func transact(ctx context.Context, c *pgx.Conn, b *pgx.Batch) error {
	err := c.SendBatch(ctx, b).Close()
	if err != nil && c.PgConn().TxStatus() != 'I' && !c.IsClosed() {
		if _, e := c.Exec(ctx, "ROLLBACK"); e != nil {
			c.Close(over)
		}
	}
	return err
}

func (k kvLead) renewals() renewals { return &leadRenewals{d: k.d} }

// leadRenewals keeps a connection of the pool: reads that occupy the others for seconds must cost no lead.
type leadRenewals struct {
	d    *Driver
	conn *pgxpool.Conn
	line int64 // number of the database of conn
}

// renew implements renewals in one transaction, which waits for no disk and no standby: a renewal that is lost does no harm.
func (r *leadRenewals) renew(ctx context.Context, held map[string]*term) (renewed map[string]bool, err error) {
	d := r.d
	if r.conn != nil && r.line != d.lineage.number.Load() {
		r.end() // it may be to an old primary
	}
	if r.conn == nil {
		r.line = d.lineage.number.Load()
		if r.conn, err = d.pool.Acquire(ctx); err != nil {
			return nil, err
		}
	}
	names, holders := make([]string, 0, len(held)), make([]string, 0, len(held))
	for _, name := range slices.Sorted(maps.Keys(held)) {
		names, holders = append(names, name), append(holders, held[name].holder)
	}
	renewed = make(map[string]bool)
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	waits, synchronous := d.lineage.observe(), false
	b.Queue(qSynchronous).QueryRow(func(row pgx.Row) error { return row.Scan(&synchronous) })
	b.Queue(qAsynchronous)
	b.Queue(qRenewLeads, names, holders, d.cfg.LeadFor).Query(func(rows pgx.Rows) error {
		var name string
		_, err := pgx.ForEachRow(rows, []any{&name}, func() error { renewed[name] = true; return nil })
		return err
	})
	b.Queue(qCommit)
	err = transact(ctx, r.conn.Conn(), b)
	if err == nil {
		waits(synchronous)
	}
	if err != nil || d.parts == 1 { // a pool of a few connections lends each for one transaction
		r.end()
	}
	if err != nil {
		return nil, err
	}
	return renewed, nil
}

// end implements renewals.
func (r *leadRenewals) end() {
	if r.conn != nil {
		r.conn.Release()
		r.conn = nil
	}
}
