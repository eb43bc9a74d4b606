package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// leads are the leads of this process, and its knowledge of those of other processes.
//
// A lead is a row of kv_lead. One loop renews all rows of this process. Another process takes a row
//   - as soon as its holder's session is known to be gone: the connection that listens for notifications has
//     a shared advisory lock whose key is the holder's nonce, and the kernel closes it when the process is
//     killed;
//   - when the row was not renewed for as long as its holder said, as each process measures by itself, independent
//     of the clock of the database. This also works through poolers, and for a holder that hangs.
//
// A holder gives its leads up by its own monotonic clock before others may take them: at 6/7 of that time after the start of
// the last renewal that was acknowledged. So a lead moves within LeadFor, two looks and a transaction, two seconds by
// default, and never to a second holder while the first one's clock runs.
//
// Where the database answers slowly, leads move slowly rather than often: the terms of a process are at least four times as
// long as its calls take, up to longest, and each look adds at most lookCounts to the time for which a row stood. So a
// holder has time for a renewal also after another process, or all of them, stood still.
//
// A holder that was stopped and does not know yet that it lost the lead changes nothing: every transaction on
// behalf of a lead verifies its row. See Driver.fence.
type leads struct {
	table   leadTable
	nonce   string        // of this process
	lasts   time.Duration // how long its rows stand at least: Config.LeadFor
	loops   *sync.WaitGroup
	closing <-chan struct{}
	log     *slog.Logger
	looks   chan struct{} // the place of the caller that reads the rows
	taking  chan struct{} // the place of the caller that takes leads
	more    chan struct{} // has the loop renew at once

	mu    sync.Mutex
	taken int64            // how many terms this process has had
	held  map[string]*term // its leads now, by name
	loop  bool             // renews them
	seen  map[string]row   // all rows, by name, as of looked
	takes []*take          // of callers that wait for the place

	calls   time.Duration // how long calls of table take, on average
	looked  time.Time     // when the rows were last read
	tried   time.Time     // the same, also without success
	failed  error         // of that
	session chan struct{} // closed once the first session has its lock; nil: none is being made
	had     bool          // session is closed
	ready   bool          // the session has its lock now
}

// leadTable is kv_lead.
type leadTable interface {
	// look returns all rows, and the keys of the sessions of other processes that are gone.
	look(ctx context.Context) (found map[string]row, gone map[int64]bool, err error)
	// take takes leads whose rows have not changed, in one transaction.
	take(ctx context.Context, all []*take) error
	// renewals returns a session for renewals.
	renewals() renewals
	// drop removes a row, unless it has another holder.
	drop(name, holder string)
}

// renewals renew rows, for one goroutine.
type renewals interface {
	// renew returns the names of the rows that it has renewed. The others have other holders.
	renew(ctx context.Context, held map[string]*term) (renewed map[string]bool, err error)
	end()
}

// term is a lead of this process.
type term struct {
	holder  string
	renewed time.Time     // a time before the last renewal
	lost    chan struct{} // closed when the lead is lost
}

// take is a lead that a caller of Lead may take.
type take struct {
	name, holder string
	over         row  // which it replaces; without a holder: there is none
	session      bool // because the session of its holder is gone

	done  chan struct{} // closed once the rest is known
	taken bool
	err   error
}

// row is a row of kv_lead.
type row struct {
	holder  string
	until   time.Time
	stood   time.Duration // how long it was seen as it is
	gone    bool          // the session of its holder is gone
	goneFor time.Duration // how long both were seen
}

const (
	// lookLeads is the greatest age of the known state of the rows.
	lookLeads = 200 * time.Millisecond
	// lookCounts is the most that one look adds to the time for which a row stood.
	lookCounts = 2 * lookLeads
	// goneFor is how long a session must be gone without a renewal of the row before another process takes
	// the lead: longer than the interval of renewals. A holder whose connection breaks makes another one.
	goneFor = 700 * time.Millisecond
	// renewMost is the longest interval of renewals.
	renewMost = goneFor * 5 / 7
	// longest is how long rows stand at most because of slow calls, and how long those of earlier versions stand, whose
	// holders do not record it.
	longest = 6 * time.Second
)

func newLeads(table leadTable, nonce string, lasts time.Duration, loops *sync.WaitGroup, closing <-chan struct{}, log *slog.Logger) *leads {
	return &leads{table: table, nonce: nonce, lasts: lasts, loops: loops, closing: closing, log: log, looks: make(chan struct{}, 1), taking: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// renewEvery returns the pause between renewals.
func (l *leads) renewEvery() time.Duration { return min(l.lasts/3, renewMost) }

// ends returns when a term ends that is not renewed: before others take the lead.
func (t *term) ends() time.Time { return t.renewed.Add(leaseDuration(t.holder) * 6 / 7) }

// leaseDuration returns how long other processes leave a row alone that has this holder.
func leaseDuration(holder string) time.Duration {
	_, number, _ := strings.Cut(holder, "/")
	_, lasts, _ := strings.Cut(number, "/")
	if d, err := time.ParseDuration(lasts); err == nil {
		return d
	}
	return longest
}

// lead is Driver.Lead.
func (l *leads) lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	l.awaitSession(ctx)
	if err := l.look(ctx); err != nil {
		return nil, nil, false, err
	}
	n := l.candidate(name)
	if n == nil {
		return nil, nil, false, nil
	}
	began := time.Now()
	if err := l.take(ctx, n); err != nil || !n.taken {
		return nil, nil, false, err
	}
	t := &term{holder: n.holder, renewed: began, lost: make(chan struct{})}
	if time.Since(began) > l.renewEvery() { // others may have seen the row for so long
		if ok, err := l.confirm(ctx, name, t); err != nil || !ok {
			return nil, nil, false, err
		}
	}
	l.hold(name, t)
	var once sync.Once
	release := func() {
		once.Do(func() {
			if l.lose(name, t) {
				l.table.drop(name, t.holder)
			}
		})
	}
	return t.lost, release, true, nil
}

// candidate returns how to take a lead if it may be taken, otherwise nil.
func (l *leads) candidate(name string) *take {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return nil
	}
	over, there := l.seen[name]
	own, _, _ := strings.Cut(over.holder, "/")
	since := min(time.Since(l.looked), lookCounts)
	gone, silent := over.gone && over.goneFor+since >= goneFor, over.stood+since >= leaseDuration(over.holder)
	if there && own != l.nonce && !gone && !silent {
		return nil
	}
	l.taken++
	mark := ""
	if l.ready {
		mark = "s"
	}
	lasts := max(l.lasts, min(4*l.calls, longest)).Round(time.Millisecond)
	return &take{name: name, holder: fmt.Sprintf("%s/%s%d/%s", l.nonce, mark, l.taken, lasts), over: over, session: gone && !silent, done: make(chan struct{})}
}

// take takes a lead. Calls that come while another one takes leads share the next transaction: a server that finds another
// one gone takes all its leads.
func (l *leads) take(ctx context.Context, t *take) error {
	l.mu.Lock()
	l.takes = append(l.takes, t)
	l.mu.Unlock()
	select {
	case l.taking <- struct{}{}:
		defer func() { <-l.taking }()
	case <-t.done: // in bounded time, as each transaction ends
		return t.err
	}
	l.mu.Lock()
	all := l.takes
	l.takes = nil
	l.mu.Unlock()
	if len(all) == 0 {
		return t.err
	}
	err := l.table.take(ctx, all)
	for _, t := range all {
		t.err = err
		close(t.done)
	}
	return t.err
}

// confirm renews a lead that was taken, and reports whether this process has it.
func (l *leads) confirm(ctx context.Context, name string, t *term) (bool, error) {
	t.renewed = time.Now()
	ctx, cancel := context.WithDeadline(ctx, t.ends())
	defer cancel()
	r := l.table.renewals()
	defer r.end()
	renewed, err := r.renew(ctx, map[string]*term{name: t})
	return renewed[name], err
}

// look reads all rows, and whether the sessions of their holders are there, unless that was done or tried a moment ago.
func (l *leads) look(ctx context.Context) error {
	select {
	case l.looks <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.looks }()
	l.mu.Lock()
	fresh, err := time.Since(l.tried) < min(lookLeads, l.renewEvery()), l.failed
	l.mu.Unlock()
	if fresh {
		return err
	}
	began := time.Now()
	found, gone, err := l.table.look(ctx)
	l.saw(found, gone, err, began)
	return err
}

// saw remembers the rows. The times of a row that is as it was go on.
func (l *leads) saw(found map[string]row, gone map[int64]bool, err error, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.tried, l.failed = now, err; err != nil {
		return
	}
	l.took(now.Sub(began))
	passed := min(now.Sub(l.looked), lookCounts)
	for name, r := range found {
		key, ok := sessionOf(r.holder)
		r.gone = ok && gone[key]
		if old := l.seen[name]; old.holder == r.holder && old.until.Equal(r.until) {
			r.stood = old.stood + passed
			if r.gone && old.gone {
				r.goneFor = old.goneFor + passed
			}
		}
		found[name] = r
	}
	l.seen, l.looked = found, now
}

// took remembers how long a call of table took. The caller holds mu.
func (l *leads) took(d time.Duration) {
	if l.calls == 0 {
		l.calls = d
	}
	l.calls = (3*l.calls + d) / 4
}

// hold remembers a lead that was taken, and has it renewed.
func (l *leads) hold(name string, t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]*term)
	}
	l.held[name] = t
	if !l.loop {
		l.loop = true
		l.loops.Go(l.keep)
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// lose ends a term, and reports whether it had not ended.
func (l *leads) lose(name string, t *term) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != t {
		return false
	}
	delete(l.held, name)
	close(t.lost)
	return true
}

// terms returns the leads that this process has now. Without one, keep ends.
func (l *leads) terms() map[string]*term {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loop = len(l.held) > 0
	return maps.Clone(l.held)
}

func (l *leads) term(name string) *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name]
}

// keep renews the leads until there is none, or the driver closes.
func (l *leads) keep() {
	r := l.table.renewals()
	defer r.end()
	wait := time.NewTimer(l.renewEvery())
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-l.more: // one that was taken slowly has little time
		case <-l.closing:
			for name, t := range l.terms() {
				l.lose(name, t)
			}
			return
		}
		held := l.terms()
		if len(held) == 0 {
			return
		}
		wait.Reset(max(0, l.renew(r, held)))
	}
}

// renew renews all leads, ends those that others have or that have ended, and returns when to renew again.
func (l *leads) renew(r renewals, held map[string]*term) (next time.Duration) {
	began := time.Now()
	var ends time.Time // the first of them
	for _, t := range held {
		if e := t.ends(); ends.IsZero() || e.Before(ends) {
			ends = e
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), ends)
	renewed, err := r.renew(ctx, held)
	cancel()
	for name, t := range held {
		switch {
		case renewed[name]:
			t.renewed = began
		case err == nil, !time.Now().Before(t.ends()):
			l.lose(name, t)
		}
	}
	if err != nil {
		l.log.Debug("cannot renew the leads", "error", err)
		return min(l.renewEvery()/5, time.Until(ends))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took(time.Since(began))
	return l.renewEvery() - time.Since(began)
}
