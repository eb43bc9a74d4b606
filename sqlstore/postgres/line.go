package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
)

// A database goes back when a standby that lacks the last commits is promoted, a backup is restored, or rows are
// deleted below running servers. A row of kv_meta, 'line', says which database it was written in: the number of
// the cluster and of its timeline, of the database, and of kv. A standby that was promoted and a copy that
// was restored are another database than their row says. The server that connects first writes the row anew, with a
// higher number, and leaves revisions out, unless all it knows is that this is a copy. So:
//
//   - a database whose row was written in another one may lack commits;
//   - a row with a higher number than before tells that another server has found that;
//   - a database with a lower number, in which its row was written, is an old primary: it is refused;
//   - where commits waited for a synchronous standby until the end, the one that is promoted lacks nothing that was shown,
//     and goes on without a gap;
//   - a newest revision below one that was met here proves that rows are gone, whatever the row says.
//
// The row is looked at in each new connection and with the bounds, the newest revision in each batch and
// with the bounds. None of the functions that are called needs a right that ordinary roles lack.

// identity is which database one is. Parts that a service does not tell are empty, and equal to any.
type identity struct {
	system   string // the number of the cluster
	timeline int64
	database string // the number of the database in it
	table    string // the number of kv
}

func (i identity) is(other identity) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(i.system, other.system) && same(i.database, other.database) && same(i.table, other.table) &&
		(i.timeline == 0 || other.timeline == 0 || i.timeline == other.timeline)
}

// branchedBefore says that i is a state of the same cluster from before other was promoted.
func (i identity) branchedBefore(other identity) bool {
	return i.system != "" && i.system == other.system && i.timeline != 0 && i.timeline < other.timeline
}

func (i identity) String() string {
	return fmt.Sprintf("cluster %s timeline %d database %s table %s", cmp.Or(i.system, "?"), i.timeline, cmp.Or(i.database, "?"), cmp.Or(i.table, "?"))
}

// place is a database, and what its row says.
type place struct {
	identity
	number   int64    // of the row; 0: there is none
	in       identity // that the row was written in
	from, to int64    // revisions that were left out then
}

// columnsOfPlace is how many qPlace has.
const columnsOfPlace = 6

// parsePlace reads the columns of qPlace. What cannot be read is as if it were not there.
func parsePlace(column [columnsOfPlace]string) (p place) {
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	p.identity = identity{column[0], number(column[1]), column[2], column[3]}
	if f := strings.Split(column[5], " "); len(f) == 6 {
		p.number = number(column[4])
		p.in = identity{f[0], number(f[1]), f[2], f[3]}
		p.from, p.to = number(f[4]), number(f[5])
	}
	return p
}

// word is what the row says in this database.
func (p *place) word() string {
	return fmt.Sprintf("%s %d %s %s %d %d", p.system, p.timeline, p.database, p.table, p.from, p.to)
}

// own says that the row was written in this database.
func (p *place) own() bool { return p.number > 0 && p.in.is(p.identity) }

// standing is how a database stands to the one that was used before.
type standing int

const (
	theSame standing = iota
	newer            // another server has found that the database went back, and written the row
	another          // it was promoted, restored or copied since the row was written
	older            // it is to be left alone
)

// line is which database this process uses.
type line struct {
	bare      atomic.Bool   // the service tells neither cluster nor timeline
	examining chan struct{} // the place of the one that examines

	mu      sync.Mutex
	known   *place // nil: none was used yet
	before  *place // the one that was used while its row was its own
	shown   func() int64
	reset   func() // drops connections that may be to another database; nil: there are none yet
	returns sqlstore.Returns
	told    time.Time // when a refusal was logged last

	number atomic.Int64 // of known
	// synchronous says that commits waited for a standby when the bounds were read last: one that is promoted then
	// has every revision that a client was shown.
	synchronous atomic.Bool
	suspect     atomic.Bool  // known is another database than its row says
	count       atomic.Int64 // returns.Count
	notice      chan struct{}
	log         *slog.Logger
}

// judge says how a database stands to the one that is known. The caller holds mu.
func (l *line) judge(p *place) standing {
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
func (l *line) meet(p place) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.judge(&p) {
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
func (l *line) keep(p *place) {
	k := *p
	if l.known = &k; k.own() {
		l.before = &k
	}
	l.number.Store(p.number)
}

// refuse remembers a database that is left alone, and logs it now and then. The caller holds mu.
func (l *line) refuse(p *place) error {
	err := &errOlder{*p, *l.known}
	now := time.Now()
	l.returns.Others++
	l.returns.Other, l.returns.Seen = err.Error(), now
	if now.Sub(l.told) > toldEvery {
		l.told = now
		l.log.Error("a database is refused", "error", err)
	}
	return err
}

const toldEvery = time.Minute

// found takes a database that went back as the one to use. The caller holds mu.
func (l *line) found(p *place, r sqlstore.Return) {
	l.keep(p)
	l.suspect.Store(false)
	l.returns.Count++
	l.returns.Lost += r.Lost()
	l.returns.Last, l.returns.At = r, time.Now()
	l.count.Store(l.returns.Count)
	args := []any{"reason", r.Reason, "newest revision met", r.Shown, "newest revision found", r.Found, "goes on behind", r.GoesOn, "database", p.identity.String()}
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

func (l *line) begin(shown func() int64, log *slog.Logger) {
	l.shown, l.log = shown, log
	l.examining, l.notice = make(chan struct{}, 1), make(chan struct{}, 1)
}

// use gives what drops connections.
func (l *line) use(reset func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset = reset
}

// learn takes what another server found. The caller holds mu.
func (l *line) learn(p *place, shown int64) {
	if p.from == p.to { // nothing was lost
		l.moved(p)
		return
	}
	l.found(p, sqlstore.Return{Reason: "another server found that the database had gone back, or been promoted, restored or copied", Shown: shown, Found: p.from, GoesOn: p.to})
}

// moved takes a database that has all that was shown. The caller holds mu.
func (l *line) moved(p *place) {
	l.keep(p)
	l.suspect.Store(false)
	l.log.Info("a synchronous standby was promoted and is used from now on: it has every revision that this server has shown", "database", p.identity.String(), "newest revision", p.to)
	if l.reset != nil {
		l.reset()
	}
}

// Returned implements sqlstore.Log.
func (d *Driver) Returned() int64 { return d.line.count.Load() }

// Returns implements sqlstore.Log.
func (d *Driver) Returns() sqlstore.Returns {
	d.line.mu.Lock()
	defer d.line.mu.Unlock()
	return d.line.returns
}

// Noticed implements sqlstore.Log.
func (d *Driver) Noticed() <-chan struct{} { return d.line.notice }

// validate looks at the database at the end of a new connection.
func (d *Driver) validate(ctx context.Context, c *pgconn.PgConn) error {
	if err := d.accepts(ctx, c); err != nil {
		return err
	}
	p, ok, err := d.placeOf(ctx, c)
	if err != nil || !ok {
		return err
	}
	return d.line.meet(p)
}

// placeOf reads what a database says of itself; not ok: it has no tables yet.
func (d *Driver) placeOf(ctx context.Context, c *pgconn.PgConn) (p place, ok bool, err error) {
	for _, bare := range []bool{false, true} {
		var column [columnsOfPlace]string
		results, err := c.Exec(ctx, placeQuery(bare)).ReadAll()
		var pg *pgconn.PgError
		switch {
		case err == nil && len(results) == 1 && len(results[0].Rows) == 1 && len(results[0].Rows[0]) == len(column):
			for i, text := range results[0].Rows[0] {
				column[i] = string(text)
			}
			d.line.bare.Store(bare)
			return parsePlace(column), true, nil
		case err == nil:
			return p, false, errors.New("the database does not say which one it is")
		case !errors.As(err, &pg) || c.IsClosed():
			return p, false, err
		case pg.Code == "42P01": // kv_meta is not there yet
			return p, false, d.tellsCluster(ctx, c)
		case bare || passing(pg):
			return p, false, fmt.Errorf("asking which database it is: %w", err)
		}
	}
	return p, false, nil
}

// tellsCluster finds out whether the service tells cluster and timeline, for the queries on this connection once the
// tables are there.
func (d *Driver) tellsCluster(ctx context.Context, c *pgconn.PgConn) error {
	_, err := c.Exec(ctx, qCluster).ReadAll()
	var pg *pgconn.PgError
	bare := errors.As(err, &pg) && !passing(pg)
	if err != nil && !bare {
		return fmt.Errorf("asking which database it is: %w", err)
	}
	d.line.bare.Store(bare)
	return nil
}

// passing reports whether an error is about the server's state at the moment: a timeout, a shutdown, a lack of memory.
// It does not show that a service hides which cluster it is.
func passing(pg *pgconn.PgError) bool {
	return pg.Code == "55P03" || len(pg.Code) == 5 && slices.Contains([]string{"08", "40", "53", "57", "58", "XX"}, pg.Code[:2])
}

func placeQuery(bare bool) string {
	if bare {
		return qPlaceBare
	}
	return qPlace
}

// examine is called where a database may have gone back, or PostgreSQL has crashed. If so,
// it leaves out the revisions that may have been given, durably: revision and floor of the log rise above them, so
// that clients which have seen one are told to list again. Snapshots of the past stay, as far as they are kept.
func (d *Driver) examine(ctx context.Context) error {
	_, _, err := d.leaveOut(ctx, -1)
	return err
}

// SkipRevisions implements sqlstore.Admin.
func (d *Driver) SkipRevisions(ctx context.Context, count int64) (from, to int64, err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	if from, to, err = d.leaveOut(ctx, max(0, count)); err != nil {
		return 0, 0, fmt.Errorf("skipping revisions: %w", err)
	}
	return from, to, nil
}

// leaveOut leaves out revisions if it has to, or as many as are asked for, unless count is negative.
func (d *Driver) leaveOut(ctx context.Context, count int64) (head, to int64, err error) {
	l := &d.line
	select {
	case l.examining <- struct{}{}:
		defer func() { <-l.examining }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	var p place
	var r sqlstore.Return
	stand, promoted, copied := theSame, false, false // promoted: and nothing is lost
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, qLock).Scan(&head); err != nil {
			return err
		}
		to = head
		var column [columnsOfPlace]string
		if err := tx.QueryRow(ctx, placeQuery(l.bare.Load())).Scan(&column[0], &column[1], &column[2], &column[3], &column[4], &column[5]); err != nil {
			return err
		}
		p = parsePlace(column)
		var alive, unsynced bool
		var reserved, since, now int64
		if err := tx.QueryRow(ctx, qAlive).Scan(&alive, &reserved, &unsynced, &since, &now); err != nil {
			return err
		}
		l.mu.Lock()
		shown, was := l.shown(), l.before
		stand = l.judge(&p)
		if stand == older && count < 0 {
			defer l.mu.Unlock()
			return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, l.refuse(&p))
		}
		l.mu.Unlock()
		r = sqlstore.Return{Shown: shown, Found: head}
		most := max(head, shown, reserved) + sqlstore.LeftOut(time.Duration(since)*time.Second)
		switch {
		case count > 0:
			r.Reason, to = "`rowlock store skip-revisions`", head+count
		case count == 0:
			r.Reason, to = "`rowlock store skip-revisions`", most
		case head < shown:
			r.Reason, to = "its newest revision is below one that was met here before", most
		case stand == another && was == nil && !p.in.branchedBefore(p.identity):
			copied = true // and this process has met no more than it has
		case stand == another && was != nil && was.branchedBefore(p.identity) && p.number == was.number && reserved <= head && l.synchronous.Load():
			promoted = true
		case stand == another:
			r.Reason, to = "it was promoted, restored or copied since a server used it last", most
		case !alive && unsynced:
			r.Reason, to = "PostgreSQL has crashed, and its synchronous_commit is off", most
		case !alive && reserved > head:
			r.Reason, to = "PostgreSQL has crashed, and relaxed commits may be lost", reserved
		}
		if r.GoesOn = to; to > head {
			if err := skip(ctx, tx, head, to); err != nil {
				return fmt.Errorf("leaving out revisions: %w", err)
			}
		}
		if to > head || p.number == 0 || promoted || copied {
			p.in, p.from, p.to = p.identity, head, to
			p.number = max(p.number+1, l.number.Load()+1, now)
			if _, err := tx.Exec(ctx, qSetLine, p.number, p.word()); err != nil {
				return err
			}
		}
		if !alive {
			_, err := tx.Exec(ctx, qRevive)
			return err
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.number.Load() >= p.number && to == head: // a concurrent call has taken it
	case to > head:
		l.found(&p, r)
		d.wake()
	case copied:
		l.keep(&p)
		l.log.Warn("the database is a copy of one that servers used; if clients or other servers have seen later revisions than it has, run `rowlock store skip-revisions` on it", "newest revision", head, "database", p.identity.String())
	case promoted:
		l.moved(&p)
		d.wake()
	case stand == newer:
		l.learn(&p, r.Shown)
	default:
		l.keep(&p)
	}
	l.suspect.Store(false)
	d.saw(to)
	return head, to, nil
}
