package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
)

// A database goes back when a standby that lacks the last commits is promoted, a backup is restored, or rows are
// deleted below running servers. A row of kv_meta, 'line', identifies the database in which it was written: the
// number of the cluster and of its timeline, of the database, and of kv. A standby that was promoted and a restored
// copy are not the database that their row names. The server that connects first writes the row anew,
// with a higher number, and leaves revisions out, unless it knows only that this is a copy. So:
//
//   - a database whose row was written in another one may lack commits;
//   - a row with a higher number than before means that another server has found that;
//   - a database with a lower number, in which its row was written, is an old primary: it is refused;
//   - where commits waited for a synchronous standby until the end, the one that is promoted lacks nothing that was shown,
//     and goes on without a gap;
//   - a newest revision below one that was seen here proves that rows are gone, whatever the row.
//
// The row is read in each new connection and with the bounds, the newest revision in each batch and
// with the bounds. None of the functions that are called needs a right that ordinary roles lack.

// relation is the relation of a database to the one that was used before.
type relation int

const (
	theSame relation = iota
	newer            // another server has found that the database went back, and written the row
	another          // it was promoted, restored or copied since the row was written
	older            // it is to be left alone
)

// lineage identifies the database that this process uses.
type lineage struct {
	bare      atomic.Bool   // the service shows neither cluster nor timeline
	examining chan struct{} // the place of the one that examines

	mu       sync.Mutex
	known    *place // nil: none was used yet
	before   *place // the one that was used while its row was its own
	shown    func() int64
	reset    func() // drops connections that may be to another database; nil: there are none yet
	returns  sqlstore.Rewinds
	loggedAt time.Time // when a refusal was logged last

	number atomic.Int64 // of known
	// synchronous means that commits waited for a standby when the bounds or the leads were read last, which is several times a
	// second: one that is promoted then has every revision that a client was shown.
	synchronous atomic.Bool
	suspect     atomic.Bool  // known is not the database that its row names
	count       atomic.Int64 // returns.Count
	notice      chan struct{}
	log         *slog.Logger
}

// observe begins to read whether commits wait for a standby. The answer counts only if it came from the database that is
// known from the beginning to the end: that of a promoted standby proves nothing about the commits before its promotion.
func (l *lineage) observe() (waits func(synchronous bool)) {
	number, suspect := l.number.Load(), l.suspect.Load()
	return func(synchronous bool) {
		if !suspect && number > 0 && number == l.number.Load() && !l.suspect.Load() {
			l.synchronous.Store(synchronous)
		}
	}
}

// compare compares a database with the known one. The caller holds mu.
func (l *lineage) compare(p *place) relation {
	k := l.known
	// A connection to the promoted standby may have been made before another server wrote its row: then the
	// standby is known already, and before is what it was promoted from.
	promoted := k != nil && (k.identity.branchedBefore(p.identity) || l.before != nil && k.identity.is(p.identity) && l.before.branchedBefore(p.identity))
	switch {
	case k == nil && p.number == 0:
		return theSame // no server has used it, or older versions alone
	case k == nil && p.own():
		return theSame
	case k == nil:
		return another
	case p.number < k.number && p.own(), p.number <= k.number && p.identity.branchedBefore(k.identity):
		return older
	case p.number > k.number && p.own() && (p.from < p.to && p.to > l.shown() || p.from == p.to && l.shown() <= p.from && promoted):
		return newer
	case p.number == k.number && p.own() && p.identity.is(k.identity):
		return theSame
	}
	return another
}

// errOlder: a database takes writes that this process must not use.
type errOlder struct{ p, known place }

func (e *errOlder) Error() string {
	return fmt.Sprintf("the database takes writes, but is an older one than this process has used (%s, line %d; used: %s, line %d): an old primary has come back, or a backup from before a failover was restored in its place; shut it down or make it a standby, or, if it is to be used from now on, run `rowlock store skip-revisions` on it",
		e.p.identity, e.p.number, e.known.identity, e.known.number)
}

// meet decides whether a connection may be used. It is called for each new one.
func (l *lineage) meet(p place) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.compare(&p) {
	case older:
		return l.refuse(&p)
	case another:
		first := l.known == nil
		l.keep(&p) // so that the one before it is refused, if that is known to be older
		l.suspect.Store(true)
		if !first && l.reset != nil {
			l.reset()
		}
	case newer:
		l.learn(&p, l.shown())
	case theSame:
		if p.number > 0 {
			l.keep(&p)
		}
	}
	return nil
}

// keep makes a database the one that is used. The caller holds mu.
func (l *lineage) keep(p *place) {
	k := *p
	if l.known = &k; k.own() {
		l.before = &k
	}
	l.number.Store(p.number)
}

// refuse remembers a database that is left alone, and logs it now and then. The caller holds mu.
func (l *lineage) refuse(p *place) error {
	err := &errOlder{*p, *l.known}
	now := time.Now()
	l.returns.Others++
	l.returns.Other, l.returns.Seen = err.Error(), now
	if now.Sub(l.loggedAt) > logEvery {
		l.loggedAt = now
		l.log.Error("a database is refused", "error", err)
	}
	return err
}

const logEvery = time.Minute

// found takes a database that went back as the one to use. The caller holds mu.
func (l *lineage) found(p *place, r sqlstore.Rewind) {
	l.keep(p)
	l.suspect.Store(false)
	l.returns.Count++
	l.returns.Lost += r.Lost()
	l.returns.Last, l.returns.At = r, time.Now()
	l.count.Store(l.returns.Count)
	args := []any{"reason", r.Reason, "newest revision met", r.Shown, "newest revision found", r.Found, "goes on behind", r.ContinuesAt, "database", p.identity.String()}
	if lost := r.Lost(); lost > 0 {
		l.log.Error("the database has gone back: revisions that this process has met are not in it; revisions are left out, all objects are loaded anew and clients list again", append(args, "lost", lost)...)
	} else {
		l.log.Warn("the database may have gone back: commits that were acknowledged may not be in it; revisions are left out, all objects are loaded anew and clients list again", args...)
	}
	if l.reset != nil {
		l.reset()
	}
	select {
	case l.notice <- struct{}{}:
	default:
	}
}

func (l *lineage) begin(shown func() int64, log *slog.Logger) {
	l.shown, l.log = shown, log
	l.examining, l.notice = make(chan struct{}, 1), make(chan struct{}, 1)
}

// use gives what drops connections.
func (l *lineage) use(reset func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset = reset
}

// learn takes what another server found. The caller holds mu.
func (l *lineage) learn(p *place, shown int64) {
	if p.from == p.to { // nothing was lost
		l.moved(p)
		return
	}
	l.found(p, sqlstore.Rewind{Reason: "another server found that the database had gone back, or been promoted, restored or copied", Shown: shown, Found: p.from, ContinuesAt: p.to})
}

// moved takes a database that has all that was shown. The caller holds mu.
func (l *lineage) moved(p *place) {
	l.keep(p)
	l.suspect.Store(false)
	l.log.Info("a synchronous standby was promoted and is used from now on: it has every revision that this server has shown", "database", p.identity.String(), "newest revision", p.to)
	if l.reset != nil {
		l.reset()
	}
}

// RewindCount implements sqlstore.Log.
func (d *Driver) RewindCount() int64 { return d.lineage.count.Load() }

// Rewinds implements sqlstore.Log.
func (d *Driver) Rewinds() sqlstore.Rewinds {
	d.lineage.mu.Lock()
	defer d.lineage.mu.Unlock()
	return d.lineage.returns
}

// RewindNotices implements sqlstore.Log.
func (d *Driver) RewindNotices() <-chan struct{} { return d.lineage.notice }

// validate looks at the database at the end of a new connection.
func (d *Driver) validate(ctx context.Context, c *pgconn.PgConn) error {
	if err := d.accepts(ctx, c); err != nil {
		return err
	}
	p, ok, err := d.placeOf(ctx, c)
	if err != nil || !ok {
		return err
	}
	return d.lineage.meet(p)
}
