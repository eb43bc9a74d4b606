package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlock/rowlock/sqlstore"
)

// leads are the leads of this process, and its knowledge of those of other processes.
//
// A lead is a row of kv_lead. One loop renews all rows of this process. Another process takes a row
//   - as soon as its holder's session is known to be gone: the connection that listens for notifications has
//     a shared advisory lock whose key is the holder's nonce, and the kernel closes it when the process is
//     killed;
//   - when the row was not renewed for longer than LeadFor, as each process measures by itself, independent
//     of the clock of the database. This also works through poolers, and for a holder that hangs.
//
// A holder that was stopped and does not know yet that it lost the lead changes nothing: every transaction on
// behalf of a lead verifies its row. See Driver.fence.
type leads struct {
	mu    sync.Mutex
	taken int64            // how many terms this process has had
	held  map[string]*term // its leads now, by name
	loop  bool             // renews them
	seen  map[string]row   // all rows, by name, as of looked
	looks chan struct{}    // the place of the caller that reads the rows

	looked  time.Time
	session chan struct{} // closed once the first session has its lock; nil: none is being made
	had     bool          // session is closed
	ready   bool          // the session has its lock now
}

// term is a lead of this process.
type term struct {
	holder  string
	renewed time.Time     // a time before the last renewal
	lost    chan struct{} // closed when the lead is lost
}

// row is a row of kv_lead.
type row struct {
	holder string
	until  time.Time
	since  time.Time // when it was first seen, with a monotonic reading
	gone   time.Time // when the session of its holder was first found to be gone; zero: it was not
}

const (
	// lookLeads is the greatest age of the known state of the rows.
	lookLeads = 200 * time.Millisecond
	// goneFor is the time that a session must be gone without a renewal of the row before another process
	// takes the lead: longer than the interval of renewals. A holder whose connection breaks makes another
	// one.
	goneFor = 700 * time.Millisecond
)

// renewEvery is the pause between renewals.
func (d *Driver) renewEvery() time.Duration { return min(d.cfg.LeadFor/10, goneFor*5/7) }

// Lead implements sqlstore.Driver. It waits only for the session of this process, and not long.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if d.closed() {
		return nil, nil, false, sqlstore.ErrClosed
	}
	d.leads.awaitSession(ctx)
	if err := d.lookAtLeads(ctx); err != nil {
		return nil, nil, false, fmt.Errorf("leading %q: %w", name, err)
	}
	holder, over, ok := d.leads.candidate(d.nonce, name, d.cfg.LeadFor*6/5)
	if !ok {
		return nil, nil, false, nil
	}
	began := time.Now()
	if ok, err := d.takeLead(ctx, name, holder, over); err != nil || !ok {
		return nil, nil, false, err
	}
	t := &term{holder: holder, renewed: began, lost: make(chan struct{})}
	d.hold(name, t)
	var once sync.Once
	release := func() {
		once.Do(func() {
			d.leads.lose(name, t)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_, _ = d.pool.Exec(ctx, qUnlead, name, holder) // otherwise it ends by itself
		})
	}
	return t.lost, release, true, nil
}

// candidate returns a name for a new holder of a lead that may be taken, and the row that it replaces, if any.
func (l *leads) candidate(nonce, name string, after time.Duration) (holder string, over row, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return "", row{}, false
	}
	over, there := l.seen[name]
	own, _, _ := strings.Cut(over.holder, "/")
	gone := !over.gone.IsZero() && time.Since(over.gone) >= goneFor
	if there && own != nonce && !gone && time.Since(over.since) < after {
		return "", row{}, false
	}
	l.taken++
	mark := ""
	if l.ready {
		mark = "s"
	}
	return fmt.Sprintf("%s/%s%d", nonce, mark, l.taken), over, true
}

// takeLead inserts the row of a lead, or replaces one that has not changed. It takes the writers' lock:
// earlier writes of a former holder are committed before, and no batch of that holder is committed
// afterwards.
func (d *Driver) takeLead(ctx context.Context, name, holder string, over row) (taken bool, err error) {
	ctx, done := d.call(ctx, d.cfg.LeadFor)
	defer done(&err)
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	count := func(rows pgx.Rows) error {
		for rows.Next() {
			taken = true
		}
		return rows.Err()
	}
	b.Queue(qLock)
	if over.holder == "" {
		b.Queue(qLead, name, holder, d.cfg.LeadFor).Query(count)
	} else {
		key, _ := sessionOf(over.holder)
		b.Queue(qTakeLead, name, holder, d.cfg.LeadFor, over.holder, over.until, !over.gone.IsZero() && time.Since(over.since) < d.cfg.LeadFor*6/5, key).Query(count)
	}
	b.Queue(qCommit)
	if err := d.transact(ctx, b); err != nil {
		return false, fmt.Errorf("leading %q: %w", name, err)
	}
	d.leads.forget() // the rows have changed
	return taken, nil
}

// transact sends a whole transaction at once.
func (d *Driver) transact(ctx context.Context, b *pgx.Batch) error {
	return d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		err := c.SendBatch(ctx, b).Close()
		if err != nil && c.Conn().PgConn().TxStatus() != 'I' && !c.Conn().IsClosed() {
			if _, e := c.Exec(ctx, "ROLLBACK"); e != nil {
				c.Conn().Close(over)
			}
		}
		return err
	})
}

// lookAtLeads reads all rows, and whether the sessions of their holders are there, unless that is known well enough.
func (d *Driver) lookAtLeads(ctx context.Context) (err error) {
	l := &d.leads
	ctx, done := d.call(ctx, d.cfg.LeadFor)
	defer done(&err)
	select {
	case l.looks <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.looks }()
	l.mu.Lock()
	fresh := time.Since(l.looked) < min(lookLeads, d.renewEvery())
	l.mu.Unlock()
	if fresh {
		return nil
	}
	waits := d.line.observe()
	rows, err := d.pool.Query(ctx, qLeaders)
	if err != nil {
		return err
	}
	var synchronous bool
	found, own := make(map[string]row), leadSession(d.nonce)
	var keys []int64
	var name string
	var r row
	if _, err := pgx.ForEachRow(rows, []any{&name, &r.holder, &r.until, &synchronous}, func() error {
		found[name] = r
		if key, ok := sessionOf(r.holder); ok && key != own && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		return nil
	}); err != nil {
		return err
	}
	if len(found) > 0 {
		waits(synchronous)
	}
	gone := make(map[int64]bool)
	if len(keys) > 0 {
		if rows, err = d.pool.Query(ctx, qSessionsGone, keys); err != nil {
			return err
		}
		var key int64
		if _, err := pgx.ForEachRow(rows, []any{&key}, func() error { gone[key] = true; return nil }); err != nil {
			return err
		}
	}
	l.saw(found, gone)
	return nil
}

// saw remembers the rows. A row that is as it was keeps the times at which it, and the end of its session, were first seen.
func (l *leads) saw(found map[string]row, gone map[int64]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for name, r := range found {
		r.since = now
		if old := l.seen[name]; old.holder == r.holder && old.until.Equal(r.until) {
			r.since, r.gone = old.since, old.gone
		}
		key, ok := sessionOf(r.holder)
		switch {
		case !ok || !gone[key]:
			r.gone = time.Time{}
		case r.gone.IsZero():
			r.gone = now
		}
		found[name] = r
	}
	l.seen, l.looked = found, now
}

// forget has the next look read the rows.
func (l *leads) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = time.Time{}
}

// hold remembers a lead that was taken, and has it renewed.
func (d *Driver) hold(name string, t *term) {
	l := &d.leads
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]*term)
	}
	l.held[name] = t
	if !l.loop {
		l.loop = true
		d.loops.Go(d.keepLeads)
	}
}

// lose ends a term, unless it has ended.
func (l *leads) lose(name string, t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] == t {
		delete(l.held, name)
		close(t.lost)
	}
}

// terms returns the leads that this process has now. Without one, keepLeads ends.
func (l *leads) terms() map[string]*term {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loop = len(l.held) > 0
	return maps.Clone(l.held)
}

// keepLeads renews the leads until there is none, or the driver closes.
func (d *Driver) keepLeads() {
	tick := time.NewTicker(d.renewEvery())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-d.closing:
			for name, t := range d.leads.terms() {
				d.leads.lose(name, t)
			}
			return
		}
		held := d.leads.terms()
		if len(held) == 0 {
			return
		}
		d.renewLeads(held)
	}
}

// renewLeads renews all leads in one transaction, which waits for no disk and no standby: a renewal that is lost does no harm.
// A holder ends before its row has stood for LeadFor, as other processes take it after that.
func (d *Driver) renewLeads(held map[string]*term) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.LeadFor/5)
	defer cancel()
	names, holders := make([]string, 0, len(held)), make([]string, 0, len(held))
	for _, name := range slices.Sorted(maps.Keys(held)) {
		names, holders = append(names, name), append(holders, held[name].holder)
	}
	began, renewed := time.Now(), make(map[string]bool)
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	waits, synchronous := d.line.observe(), false
	b.Queue(qSynchronous).QueryRow(func(row pgx.Row) error { return row.Scan(&synchronous) })
	b.Queue(qAsynchronous)
	b.Queue(qRenewLeads, names, holders, d.cfg.LeadFor).Query(func(rows pgx.Rows) error {
		var name string
		_, err := pgx.ForEachRow(rows, []any{&name}, func() error { renewed[name] = true; return nil })
		return err
	})
	b.Queue(qCommit)
	err := d.transact(ctx, b)
	if err != nil {
		d.cfg.Log.Debug("cannot renew the leads", "names", names, "error", err)
	} else {
		waits(synchronous)
	}
	d.leads.renewed(held, func(name string) bool { return err == nil && renewed[name] }, err == nil, began, d.cfg.LeadFor*4/5)
}

// renewed records renewals. It ends the terms whose row belongs to another process, and those that were not
// renewed for longer than most.
func (l *leads) renewed(held map[string]*term, was func(name string) bool, answered bool, began time.Time, most time.Duration) {
	for name, t := range held {
		switch {
		case was(name):
			t.renewed = began
		case answered, time.Since(t.renewed) > most:
			l.lose(name, t)
		}
	}
}
