package simulated_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// driver is one server's view of the database that all servers share. Each of its calls waits until the simulation
// executes it, and then until the simulation answers it, with its result or with an error.
type driver struct {
	sqlstore.Simple
	world  *world
	server *server
	inner  *memory.Driver
	hints  chan struct{}
	hinted bool // another server has committed since the last hint
	dead   bool // its process was killed
	leads  map[string]chan struct{}
	cut    *commit // the last commit that ended with ErrUncertain

	era     int // how many failovers it knows of
	returns sqlstore.Rewinds
	noticed bool // and the feed has no hint of it yet
	notice  chan struct{}
}

var _ sqlstore.Driver = (*driver)(nil)

// commit is a call of Apply.
type commit struct {
	driver *driver
	batch  []sqlstore.Txn
	now    time.Time
	out    []sqlstore.Outcome
	done   bool // it is in the table
	never  bool // it will never be in the table
}

// call is a call of a driver that waits for the simulation.
type call struct {
	driver *driver
	method string
	who    string // the goroutine that calls: a client's request, or the functions on its stack
	number int    // among calls that are equal otherwise
	commit *commit
	do     func()
	done   bool // it was executed
	due    time.Time
	own    bool // of the simulation, and not of the driver: it cannot fail
	answer chan error
}

func (c *call) String() string {
	who := c.who
	if i := strings.LastIndexByte(who, '<'); i >= 0 {
		who = who[i+1:]
	}
	return fmt.Sprintf("%s of %s by %s", c.method, c.driver.server, who)
}

// compare orders calls in the same way in each run of a seed, whichever goroutine came first.
func (c *call) compare(o *call) int {
	return cmp.Or(cmp.Compare(c.driver.server.number, o.driver.server.number), strings.Compare(c.who, o.who), strings.Compare(c.method, o.method), cmp.Compare(c.number, o.number))
}

// requestKey is the key of a client's request in its context.
type requestKey struct{}

// stacks names the stacks of goroutines.
type stacks struct {
	mu    sync.Mutex
	names map[[24]uintptr]string
}

// caller names the goroutine that calls a driver. The store has one goroutine for each of its tasks, so the functions
// on the stack tell them apart.
func (s *stacks) caller(ctx context.Context) string {
	if name, ok := ctx.Value(requestKey{}).(string); ok {
		return name
	}
	var pcs [24]uintptr
	n := runtime.Callers(4, pcs[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[pcs]; ok {
		return name
	}
	var parts []string
	for frames := runtime.CallersFrames(pcs[:n]); ; {
		f, more := frames.Next()
		if name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]; name != "runtime.goexit" && !strings.Contains(name, "WaitGroup") && !strings.Contains(name, "_test.") {
			parts = append(parts, name)
		}
		if !more {
			break
		}
	}
	slices.Reverse(parts)
	s.names[pcs] = strings.Join(parts, "<")
	return s.names[pcs]
}

var callers = &stacks{names: map[[24]uintptr]string{}}

// ask waits until a call was executed and answered.
func ask[T any](ctx context.Context, d *driver, method string, do func(*memory.Driver) (T, error)) (out T, err error) {
	var result error
	c := &call{driver: d, method: method}
	c.do = func() { out, result = do(d.inner) }
	if err := d.world.wait(ctx, c); err != nil {
		return *new(T), err
	}
	return out, result
}

// wait registers a call, and returns once it is answered or ctx has ended.
func (w *world) wait(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.who, c.answer = callers.caller(ctx), make(chan error, 1)
	w.mu.Lock()
	if c.driver.dead {
		w.mu.Unlock()
		return sqlstore.ErrClosed
	}
	if name := leadOf(c.method); name != "" && w.leaders[name] != c.driver {
		w.failed("%s without the lead of %s", c, name)
	}
	for _, o := range w.calls {
		if o.driver == c.driver && o.who == c.who && o.method == c.method {
			c.number = max(c.number, o.number+1)
		}
	}
	w.calls = append(w.calls, c)
	w.mu.Unlock()
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
		return ctx.Err()
	}
}

// leadOf returns the lead that a server must hold to call a method.
func leadOf(method string) string {
	method, _, _ = strings.Cut(method, "(")
	switch method {
	case "Expired":
		return "expiry"
	case "Retain", "Trim", "Pack", "Forget":
		return sqlstore.CompactorLead
	}
	return ""
}

// waiting returns the calls that wait, in an order that does not depend on the scheduler.
func (w *world) waiting() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.calls, (*call).compare)
	return slices.Clone(w.calls)
}

// execute executes a call, unless that was done before.
func (w *world) execute(c *call) {
	if !c.done {
		c.done = true
		if !c.own {
			c.driver.look()
		}
		c.do()
	}
}

// look notices that the database is another one than before, as a driver does before it gives any answer of it.
func (d *driver) look() {
	if d.era == len(d.world.breaks) {
		return
	}
	last := d.world.breaks[len(d.world.breaks)-1]
	d.era = len(d.world.breaks)
	d.returns.Count++
	d.returns.Last = sqlstore.Rewind{Reason: "a standby was promoted", Found: last.found, ContinuesAt: last.goesOn}
	d.noticed = true
}

func (d *driver) RewindCount() int64             { return d.returns.Count }
func (d *driver) Rewinds() sqlstore.Rewinds      { return d.returns }
func (d *driver) RewindNotices() <-chan struct{} { return d.notice }

// release answers a call: nil gives its result.
func (w *world) release(c *call, err error) {
	w.mu.Lock()
	w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	w.mu.Unlock()
	c.answer <- err
}

// answer executes a call and gives its result, or a fault.
func (w *world) answer(c *call, fault uint32) string {
	unavailable := fmt.Errorf("%w: the connection was cut", sqlstore.ErrUnavailable)
	switch {
	case c.commit != nil:
		return w.answerCommit(c, fault)
	case fault == 0 || c.own:
		w.execute(c)
		w.release(c, nil)
		return "is answered"
	case fault%3 == 0:
		w.release(c, fmt.Errorf("%w: too many connections", sqlstore.ErrBusy))
		return "fails as busy"
	}
	w.release(c, unavailable)
	return "fails"
}

func (w *world) answerCommit(c *call, fault uint32) string {
	uncertain := fmt.Errorf("%w: the connection was cut", sqlstore.ErrUncertain)
	d := c.driver
	if fault == 0 {
		w.execute(c)
		w.release(c, nil)
		return "is answered"
	}
	d.hinted = true // its store does not know that there is something new
	switch {
	case fault%6 == 1:
		w.execute(c)
		d.cut = c.commit
		w.release(c, uncertain)
		return "commits, and the answer is lost"
	case c.done:
		d.cut = c.commit
		w.release(c, uncertain)
		return "has committed, and the answer is lost"
	case fault%6 == 2:
		c.commit.never = true
		d.cut = c.commit
		w.release(c, uncertain)
		return "is cut before the commit"
	case fault%6 == 3 && !w.cfg.exclusive:
		d.cut = c.commit
		w.late = append(w.late, c.commit)
		w.release(c, uncertain)
		return "is cut while the commit is under way"
	case fault%6 == 4:
		w.release(c, fmt.Errorf("%w: locked", sqlstore.ErrBusy))
		return "fails as busy"
	}
	w.release(c, fmt.Errorf("%w: no connection", sqlstore.ErrUnavailable))
	return "fails"
}

// run commits.
func (m *commit) run(w *world, on *memory.Driver) error {
	if m.done || m.never {
		return nil
	}
	out, err := on.Apply(context.Background(), m.batch, m.now)
	if err != nil {
		m.never = true
		return err
	}
	m.out, m.done = out, true
	w.record(m)
	return nil
}

// lost reports whether a commit is in a history that a failover has ended.
func (m *commit) lost(w *world) bool {
	for _, out := range m.out {
		if len(out.Revisions) > 0 && w.truth.lost(out.Revisions[0], w.head()) {
			return true
		}
	}
	return false
}

func (d *driver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	m := &commit{driver: d, batch: batch, now: now}
	var result error
	c := &call{driver: d, method: fmt.Sprintf("Apply(%s)", describe(batch)), commit: m}
	c.do = func() { result = m.run(d.world, d.inner) }
	if err := d.world.wait(ctx, c); err != nil {
		return nil, err
	}
	return m.out, result
}

func describe(batch []sqlstore.Txn) string {
	var all []string
	for _, txn := range batch {
		for _, op := range txn.Ops {
			all = append(all, fmt.Sprintf("%s %s/%s at %d", [...]string{"", "create", "update", "delete"}[op.Verb], op.Key.Resource, op.Key.Name, op.Expect))
		}
	}
	return strings.Join(all, ", ")
}

func (d *driver) Resolve(ctx context.Context) ([]sqlstore.Outcome, bool, error) {
	type resolved struct {
		out       []sqlstore.Outcome
		committed bool
	}
	r, err := ask(ctx, d, "Resolve", func(*memory.Driver) (resolved, error) {
		if d.cut == nil {
			return resolved{}, errors.New("no commit was cut")
		}
		if !d.cut.done || d.cut.lost(d.world) {
			d.cut.never = true
			return resolved{}, nil
		}
		return resolved{d.cut.out, true}, nil
	})
	return r.out, r.committed, err
}

func (d *driver) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	return ask(ctx, d, "Bounds", func(m *memory.Driver) (sqlstore.Bounds, error) { return m.Bounds(context.Background()) })
}

func (d *driver) Scan(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	return ask(ctx, d, fmt.Sprintf("Scan(%s after %s at %d)", req.Resource, req.After.Name, req.Revision), func(m *memory.Driver) ([]sqlstore.Row, error) { return m.Scan(context.Background(), req) })
}

func (d *driver) Read(ctx context.Context, key sqlstore.Key, revision int64) (sqlstore.Row, error) {
	return ask(ctx, d, "Read", func(m *memory.Driver) (sqlstore.Row, error) { return m.Read(context.Background(), key, revision) })
}

// ReadAll reads in small pages, between which the table changes.
func (d *driver) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	const page = 4
	req := sqlstore.ScanRequest{Limit: page, Revision: revision}
	for {
		rows, err := d.Scan(ctx, req)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			req.After = rows[len(rows)-1].Key
			if err := take(rows); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return ctx.Err()
		}
	}
}

func (d *driver) Expired(ctx context.Context, now time.Time, limit int) ([]sqlstore.Row, error) {
	return ask(ctx, d, "Expired", func(m *memory.Driver) ([]sqlstore.Row, error) { return m.Expired(context.Background(), now, limit) })
}

// Changes may have fewer entries than there are, as those of a standby.
func (d *driver) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	return ask(ctx, d, fmt.Sprintf("Changes(after %d)", after), func(m *memory.Driver) ([]sqlstore.Change, error) {
		if d.world.short > 0 {
			limit = min(limit, int(d.world.short)-1)
		}
		return m.Changes(context.Background(), after, limit, previous)
	})
}

func (d *driver) LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error) {
	return ask(ctx, d, "LastChanges", func(m *memory.Driver) (map[string]int64, error) {
		return m.LastChanges(context.Background(), after, upTo)
	})
}

func (d *driver) RevisionAt(ctx context.Context, t time.Time) (int64, error) {
	return ask(ctx, d, "RevisionAt", func(m *memory.Driver) (int64, error) { return m.RevisionAt(context.Background(), t) })
}

func (d *driver) Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error) {
	revision, err = ask(ctx, d, "Aged", func(m *memory.Driver) (int64, error) {
		var r int64
		var err error
		r, at, err = m.Aged(context.Background(), newest, t, now)
		return r, err
	})
	return revision, at, err
}

func (d *driver) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	t, err = ask(ctx, d, "Since", func(m *memory.Driver) (time.Time, error) {
		var at time.Time
		var err error
		at, ok, err = m.Since(context.Background(), revision)
		return at, err
	})
	return t, ok && err == nil, err
}

// Hints are sent by the simulation, while the feed waits for one.
func (d *driver) Hints(context.Context) <-chan struct{} { return d.hints }

func (d *driver) Exclusive() uint64 {
	if !d.world.cfg.exclusive || d.dead || d.world.openDrivers != 1 {
		return 0
	}
	return d.world.turns
}

func (d *driver) Past(ctx context.Context, key sqlstore.Key, before int64, limit int) ([]sqlstore.Row, error) {
	return ask(ctx, d, "Past", func(m *memory.Driver) ([]sqlstore.Row, error) {
		return m.Past(context.Background(), key, before, limit)
	})
}

func (d *driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) ([]sqlstore.Row, error) {
	return ask(ctx, d, "Older", func(m *memory.Driver) ([]sqlstore.Row, error) {
		return m.Older(context.Background(), upTo, after, limit)
	})
}

func (d *driver) Floors(ctx context.Context) (sqlstore.Floors, error) {
	return ask(ctx, d, "Floors", func(m *memory.Driver) (sqlstore.Floors, error) { return m.Floors(context.Background()) })
}

func (d *driver) Retain(ctx context.Context, to sqlstore.Floors) (sqlstore.Floors, error) {
	return ask(ctx, d, "Retain", func(m *memory.Driver) (sqlstore.Floors, error) {
		d.world.ripe(d, to.Log)
		return m.Retain(context.Background(), to)
	})
}

func (d *driver) Trim(ctx context.Context, to int64, limit int) (int, error) {
	return ask(ctx, d, fmt.Sprintf("Trim(%d)", to), func(m *memory.Driver) (int, error) {
		d.world.ripe(d, to)
		return m.Trim(context.Background(), to, limit)
	})
}

func (d *driver) ConcurrentTrim() bool { return false }

func (d *driver) Pack(ctx context.Context, from sqlstore.Cursor, limit int) (sqlstore.Packed, error) {
	return ask(ctx, d, "Pack", func(m *memory.Driver) (sqlstore.Packed, error) { return m.Pack(context.Background(), from, limit) })
}

func (d *driver) Forget(ctx context.Context, limit int) (int, error) {
	return ask(ctx, d, "Forget", func(m *memory.Driver) (int, error) { return m.Forget(context.Background(), limit) })
}

func (d *driver) Now() time.Time { return time.Now() }

// Lead is held until the simulation takes it away.
func (d *driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	held, err := ask(ctx, d, fmt.Sprintf("Lead(%s)", name), func(*memory.Driver) (chan struct{}, error) {
		if d.world.leaders[name] != nil {
			return nil, nil
		}
		d.world.leaders[name] = d
		d.leads[name] = make(chan struct{})
		return d.leads[name], nil
	})
	if held == nil || err != nil {
		return nil, nil, false, err
	}
	return held, func() {
		d.world.mu.Lock()
		defer d.world.mu.Unlock()
		if d.leads[name] == held {
			delete(d.leads, name)
			delete(d.world.leaders, name)
		}
	}, true, nil
}

func (d *driver) Note(ctx context.Context, name string) (string, error) {
	return ask(ctx, d, "Note", func(m *memory.Driver) (string, error) { return m.Note(context.Background(), name) })
}

func (d *driver) SetNote(ctx context.Context, name, was, is string) (bool, error) {
	return ask(ctx, d, "SetNote", func(m *memory.Driver) (bool, error) { return m.SetNote(context.Background(), name, was, is) })
}

func (d *driver) Load(context.Context, sqlstore.Content) error { return errors.ErrUnsupported }

func (d *driver) Stats(ctx context.Context) (sqlstore.Stats, error) { return d.inner.Stats(ctx) }

func (d *driver) Close() error {
	d.world.openDrivers--
	d.world.turns++
	return d.inner.Close()
}

// sleep is Config.Sleep: it ends when the simulation answers it, at its time at the earliest.
func (d *driver) sleep(ctx context.Context, for_ time.Duration) bool {
	return d.world.wait(ctx, &call{driver: d, method: "sleep", due: time.Now().Add(for_), do: func() {}, own: true}) == nil
}

// sink is a server's cache as its feed sees it. Each page waits until all waiters for the previous one have
// come to rest.
type sink struct {
	*cache.Cache
	driver *driver
}

func (s sink) Apply(batch []sqlstore.Change) {
	c := &call{driver: s.driver, method: fmt.Sprintf("memory(%d to %d)", batch[0].Revision, batch[len(batch)-1].Revision), do: func() {}, own: true}
	if s.driver.world.wait(context.Background(), c) == nil {
		s.Cache.Apply(batch)
	}
}

func (s sink) Reload(ctx context.Context, from *sqlstore.Store, afresh bool) (int64, error) {
	revision, err := s.Cache.Reload(ctx, from, afresh)
	if err == nil {
		s.driver.server.reloads++
	}
	return revision, err
}
