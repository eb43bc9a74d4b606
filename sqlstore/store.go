package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a Store. Zero values take the named defaults.
type Config struct {
	Retention           time.Duration        // how long ended rows are kept; default 5m
	RetentionByResource Retention            // the same, which may differ by resource; default Retention
	LowerNow            bool                 // a retention below that of the last server applies at once, not after LowerAfter
	LogRetention        time.Duration        // how much of that stays in the log at most; older rows are packed; default 10m
	PackEvery           time.Duration        // how often it is packed; default as long as the log is kept
	MaxBatch            int                  // most Txns in one commit; default 512
	MaxBatchSize        int                  // most value bytes in one commit; default 4 MiB
	MaxValue            int                  // largest value; default 33 MiB (the API's own limit is lower)
	RetryFor            time.Duration        // how long operations on a busy or unreachable database are retried before writes fail; default 5s
	CompactEvery        time.Duration        // how often retention is enforced; default a tenth of Retention, 1s to 1m
	ExpireEvery         time.Duration        // how often expired rows are looked for; default 5s
	Observer            Observer             // for metrics; may be nil
	Sealer              Sealer               // encrypts values; nil: they are stored as they are, and rows are not inspected
	Clock               func() time.Time     // default: the driver's
	Elapsed             func() time.Duration // elapsed time, independent of wall clocks
	Log                 *slog.Logger
	// Sleep waits between checks for old history and expired rows until Clock and Elapsed have moved by d;
	// false: ctx has ended first. Default: real time.
	Sleep func(ctx context.Context, d time.Duration) bool
}

func (c Config) withDefaults() Config {
	setDefault(&c.Retention, 5*time.Minute)
	if c.RetentionByResource.Default <= 0 {
		c.RetentionByResource.Default = c.Retention
	}
	c.Retention = c.RetentionByResource.Default
	setDefault(&c.LogRetention, 10*time.Minute)
	setDefault(&c.PackEvery, c.RetentionByResource.log(c.LogRetention))
	setDefault(&c.MaxBatch, 512)
	setDefault(&c.MaxBatchSize, 4<<20)
	setDefault(&c.MaxValue, 33<<20)
	setDefault(&c.RetryFor, 5*time.Second)
	setDefault(&c.CompactEvery, min(max(c.Retention/10, time.Second), time.Minute))
	setDefault(&c.ExpireEvery, 5*time.Second)
	if c.Observer == nil {
		c.Observer = nopObserver{}
	}
	if c.Elapsed == nil {
		began := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(began) }
	}
	if c.Sleep == nil {
		c.Sleep = Sleep
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Observer observes a Store. Its methods are called on hot paths and must return at once.
type Observer interface {
	// Committed: one Apply of txns Txns with ops Ops took d.
	Committed(txns, ops int, d time.Duration, err error)
	// Applied: the sink has applied revision, of a log whose newest known one is head. lag is the age of the
	// newest change just applied.
	Applied(applied, head int64, lag time.Duration)
	// Reloaded: the feed had fallen behind the log, and the sink was reloaded in d.
	Reloaded(revision int64, d time.Duration)
	// Trimmed: compaction has reached floor, deleting rows.
	Trimmed(floor int64, rows int)
	// Packed: rows with values of that many bytes were packed, and the packs grew by stored.
	Packed(rows int, bytes, stored int64)
	// Expired: rows were deleted because they had expired.
	Expired(rows int)
	// EffectiveRetention: the server that compacts keeps history for this long. left is the time until the lower
	// retention of its Config applies; 0: it does.
	EffectiveRetention(kept Retention, left time.Duration)
	// Queried: a call of the driver other than a commit took d; query names it.
	Queried(query string, d time.Duration, err error)
	// Refused: the database refused an operation that was not retried: operation is OpWrite, or names a
	// query.
	Refused(operation string, kind Kind)
}

type nopObserver struct{}

func (nopObserver) Committed(int, int, time.Duration, error)    {}
func (nopObserver) Applied(int64, int64, time.Duration)         {}
func (nopObserver) Reloaded(int64, time.Duration)               {}
func (nopObserver) Trimmed(int64, int)                          {}
func (nopObserver) Packed(int, int64, int64)                    {}
func (nopObserver) Expired(int)                                 {}
func (nopObserver) EffectiveRetention(Retention, time.Duration) {}
func (nopObserver) Queried(string, time.Duration, error)        {}
func (nopObserver) Refused(string, Kind)                        {}

// Sink receives the log. The store calls it from one goroutine, in revision
// order, without gaps, and acknowledges an own write only after the Sink has
// returned from its revision. It must not block, and must not keep the slice.
// Changes come without previous values, which a sink has itself.
type Sink interface {
	Apply(batch []Change)
}

// Deliverer is a Sink whose other goroutines pass changes to watchers.
type Deliverer interface {
	Sink
	// Deliver returns when all watchers that can take them without delay have the changes of the last Apply,
	// and after most at the latest. The goroutine of Apply calls it.
	Deliver(most time.Duration)
}

// Reloader is a Sink that can be reloaded from live rows if the log no longer reaches back, or the database
// went back to an older state.
type Reloader interface {
	Sink
	// Reload replaces the content of the sink by all live rows at a revision no older than the call, and
	// returns that revision. afresh means that the database went back: the revision of a row no longer proves
	// that the sink has that row already.
	Reload(ctx context.Context, s *Store, afresh bool) (revision int64, err error)
}

// Store is the interface of servers to the database. It is safe for concurrent use.
type Store struct {
	driver  Driver
	cfg     Config
	running atomic.Bool
	start   runStart
	ended   atomic.Bool // Run has returned: no more writes are accepted
	applied atomic.Int64
	head    atomic.Int64 // newest revision known here
	floor   atomic.Int64
	floors  atomic.Pointer[Floors] // as known here; nil: not yet
	asking  chan struct{}          // held while a caller asks the driver for the floors
	// exclusive is the driver's Exclusive under which head was last read: while it holds, head moves only
	// with own writes.
	exclusive atomic.Uint64
	queue     queue
	heads     heads
	polls     chan struct{}             // see Poll
	lastPoll  atomic.Pointer[time.Time] // when the feed last began to look at the table
	own       chan []*write             // committed batches, from committer to feed
	// underway is the batch between the start of its commit and its place in own.
	underway  atomic.Pointer[[]*write]
	goal      goal
	loaded    atomic.Int64 // the driver's RewindCount when the sink was loaded last
	refused   *refusals
	slow      slowKeys
	readSlots chan struct{} // places of openAll for readers
	feedSlots chan struct{} // the same for the feed
}

// runStart is the moment at which Run was called.
type runStart struct {
	elapsed  time.Duration
	revision int64 // the newest one that the sink had
}

// New makes a Store on a driver. Nothing runs until Run.
func New(d Driver, cfg Config) *Store {
	cfg = cfg.withDefaults()
	refused := newRefusals(cfg)
	s := &Store{driver: timed{d, cfg.Observer, refused}, cfg: cfg, refused: refused, own: make(chan []*write, 4), asking: make(chan struct{}, 1), readSlots: make(chan struct{}, atOnce), feedSlots: make(chan struct{}, atOnce)}
	s.loaded.Store(d.RewindCount())
	if s.cfg.Clock == nil {
		s.cfg.Clock = d.Now
	}
	s.queue.wake = make(chan struct{}, 1)
	s.heads.wake = make(chan struct{}, 1)
	s.polls = make(chan struct{}, 1)
	return s
}

// Run commits, feeds and compacts until ctx ends, then waits for its goroutines. The sink first gets every
// change after from. Writes that wait when ctx ends fail with ErrClosed; a commit in progress is finished.
//
// If the changes that the feed needs are gone, or the database went back, a Reloader is reloaded; with
// another sink Run ends with CompactedError, and may be called again.
func (s *Store) Run(ctx context.Context, from int64, sink Sink) error {
	if !s.running.CompareAndSwap(false, true) {
		return errors.New("sqlstore: Run is running already")
	}
	s.ended.Store(false)
	defer s.running.Store(false)
	s.start = runStart{s.cfg.Elapsed(), from}
	s.applied.Store(from)
	s.head.Store(max(from, s.head.Load()))
	s.heads.mu.Lock()
	s.heads.over = false
	s.heads.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var loops sync.WaitGroup
	feeding, stopFeed := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeed()
	f := &feed{Store: s, sink: sink, hints: s.driver.Hints(feeding)}
	loops.Go(func() {
		defer stopFeed() // the feed outlives the committer, to acknowledge its last batch
		s.commit(ctx)
	})
	loops.Go(func() {
		failed = f.run(feeding, ctx, cancel)
	})
	loops.Go(func() { s.answerHeads(ctx) })
	loops.Go(func() { s.followFloors(ctx) })
	loops.Go(func() { s.Lead(ctx, CompactorLead, s.compact) })
	loops.Go(func() { s.Lead(ctx, "expiry", s.expire) })
	loops.Wait()
	s.ended.Store(true) // before the queue is emptied: a later write empties it itself
	s.queue.fail(ErrClosed)
	if failed != nil {
		return fmt.Errorf("feeding from revision %d: %w", s.applied.Load(), failed)
	}
	return nil
}

// Poll makes the feed look at the table, unless it has begun to do so since a time. Callers that have waited for a revision
// since then call it when no hint has come: the connection that hints come from may be dead. Calls are merged.
func (s *Store) Poll(since time.Time) {
	if last := s.lastPoll.Load(); last != nil && !last.Before(since) {
		return
	}
	select {
	case s.polls <- struct{}{}:
	default:
	}
}

// Now returns the time of the clock that all servers of the database share, to which Op.ExpiresAt refers.
func (s *Store) Now() time.Time { return s.cfg.Clock() }

// Applied returns the newest revision that the sink has.
func (s *Store) Applied() int64 { return s.applied.Load() }

// Floor returns the highest compacted revision known here.
func (s *Store) Floor() int64 { return s.floor.Load() }

// Lag returns how many revisions the sink is behind the newest one known here.
func (s *Store) Lag() int64 { return max(0, s.head.Load()-s.applied.Load()) }

// Behind returns how long the sink has lacked a known revision.
func (s *Store) Behind() time.Duration { return s.goal.missed(s.applied.Load()) }

// goal is a revision that the feed should reach, and since when.
type goal struct {
	mu       sync.Mutex
	revision int64
	since    time.Time
}

// set replaces a goal that has been reached.
func (g *goal) set(applied, head int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if applied >= g.revision && head > g.revision {
		g.revision, g.since = head, time.Now()
	}
}

func (g *goal) missed(applied int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if applied >= g.revision {
		return 0
	}
	return time.Since(g.since)
}

// Scan, Read, Changes and Bounds read the table; see Driver. Values are decrypted; if that fails, the row has
// the error, and the call has none.
func (s *Store) Scan(ctx context.Context, req ScanRequest) ([]Row, error) {
	rows, err := s.driver.Scan(ctx, req)
	s.openRows(ctx, rows)
	return rows, err
}

func (s *Store) Read(ctx context.Context, key Key, revision int64) (Row, error) {
	row, err := s.driver.Read(ctx, key, revision)
	if err == nil {
		s.openRow(ctx, &row)
	}
	return row, err
}

// Past reads the rows of one key, newest first; see Driver.
func (s *Store) Past(ctx context.Context, key Key, before int64, limit int) ([]Row, error) {
	rows, err := s.driver.Past(ctx, key, before, limit)
	if len(rows) > 0 {
		s.showed(rows[0].Revision)
	}
	s.openRows(ctx, rows)
	return rows, err
}

// RevisionAt returns the newest revision that was written at or before a time; see Driver.
func (s *Store) RevisionAt(ctx context.Context, t time.Time) (int64, error) {
	return s.driver.RevisionAt(ctx, t)
}

// Since returns the earliest time at which RevisionAt knows a revision; see Driver.
func (s *Store) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	return s.driver.Since(ctx, revision)
}

func (s *Store) Changes(ctx context.Context, after int64, limit int, previous bool) ([]Change, error) {
	changes, err := s.driver.Changes(ctx, after, limit, previous)
	if len(changes) > 0 {
		s.showed(changes[len(changes)-1].Revision)
	}
	s.openChanges(ctx, changes, nil, s.readSlots)
	return changes, err
}

// LastChanges returns when each resource last changed; see Driver.
func (s *Store) LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error) {
	return s.driver.LastChanges(ctx, after, upTo)
}

func (s *Store) Bounds(ctx context.Context) (Bounds, error) {
	b, err := s.driver.Bounds(ctx)
	if err == nil {
		s.saw(b)
	}
	return b, err
}

// showed records a revision that a reader found in the table. Its commit may not be in the cache yet, and
// Head must not be older: a client that has seen an object must find it in its next list.
func (s *Store) showed(revision int64) { raise(&s.head, revision) }

// saw records the newest bounds.
func (s *Store) saw(b Bounds) {
	raise(&s.floor, b.Floor)
	raise(&s.head, b.Head)
	if applied := s.applied.Load(); b.Head > applied {
		s.goal.set(applied, b.Head)
	}
}

func raise(v *atomic.Int64, to int64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// Sleep waits for d, or returns false when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
