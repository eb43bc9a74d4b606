package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// catalogue knows two resources, of which one has an indexed field.
var catalogue = kinds.NewCatalogue([]*kinds.Resource{
	{
		Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, New: func() kinds.Object { return &corev1.Pod{} },
		Storage: &kinds.Storage{
			Key: "pods", GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Indexed: []string{"spec.nodeName"},
			Fields: []kinds.SelectableField{{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}}},
		},
	},
	{
		Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, New: func() kinds.Object { return &corev1.ConfigMap{} },
		Storage: &kinds.Storage{Key: "configmaps", GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap")},
	},
})

// config is the settings of a run, drawn from its seed.
type config struct {
	servers   int
	exclusive bool // drivers may report that no other process writes, and commits do not outlive their process
	faults    uint32
	cache     cache.Config
	store     sqlstore.Config
	filler    int // bytes of each object
	keys      int
	watchers  int
}

func (c config) String() string {
	return fmt.Sprintf("%d servers (alone: %t), %d%% faults, %d events in memory, %d bytes an object, %d keys, %d watchers; retention %s, log %s, %d writes a commit, tried for %s",
		c.servers, c.exclusive, c.faults, c.cache.RingEvents, c.filler, c.keys, c.watchers, c.store.Retention, c.store.LogRetention, c.store.MaxBatch, c.store.RetryFor)
}

func newConfig(rng *rand.Rand) config {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	c := config{
		servers: pick(1, 2, 2, 2, 3), faults: uint32(pick(0, 5, 15, 40)), keys: pick(1, 3, 6, 12), watchers: pick(2, 4, 8),
		cache: cache.Config{RingEvents: pick(1, 3, 10, 0), PlainBytes: int64(pick(0, 1))},
		store: sqlstore.Config{
			Retention: time.Duration(pick(5, 20, 300)) * time.Second, MaxBatch: pick(1, 2, 512), RetryFor: time.Duration(pick(1, 50, 2000)) * time.Millisecond,
			ExpireEvery: time.Second, LowerNow: true,
		},
	}
	c.exclusive = rng.IntN(5) == 0
	if rng.IntN(10) == 0 {
		c.filler = 150 << 10 // a few fill the queue of a watcher
	}
	if rng.IntN(2) == 0 {
		c.store.LogRetention = time.Duration(pick(2, 10)) * time.Second // shorter than the retention of packs
	}
	return c
}

// world is a run.
type world struct {
	truth
	cfg      config
	db       *memory.Database
	outside  *memory.Driver // in no server
	servers  []*server
	watchers []*watcher
	pagers   []*pager
	leaders  map[string]*driver
	late     []*commit // of processes or connections that are gone, under way still
	short    uint32    // how many changes, and one, the next read of the log has at most; 0: all
	requests int
	bursts   int
	shown    int64             // newest revision that any client has seen or was acknowledged
	writes   map[string]*write // by value
	trace    []string
	reached  int // steps

	openDrivers int
	turns       uint64 // how often that changed

	mu        sync.Mutex
	calls     []*call
	finished  []*request
	open      []*request // not finished
	violation string
}

// failed notes the first violation.
func (w *world) failed(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

func (w *world) say(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%3d %8s  ", w.reached, time.Since(epoch).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// epoch is the time at which fake time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// server is one life of a server process.
type server struct {
	number int // of the machine
	life   int
	driver *driver
	store  *sqlstore.Store
	cache  *cache.Cache
	*objects.Store
	stop     context.CancelFunc
	ended    chan struct{}
	up       bool // guarded by world.mu
	stopping bool
	failed   error
	reloads  int
	newest   int64 // newest revision of a list of whatever is in memory
	jobs     int   // that run under the lead
}

func (s *server) String() string { return fmt.Sprintf("server %d.%d", s.number, s.life) }

// start starts a server on a machine.
func (w *world) start(number, life int) *server {
	s := &server{number: number, life: life, ended: make(chan struct{})}
	s.driver = &driver{world: w, server: s, inner: w.db.Open(), hints: make(chan struct{}), leads: map[string]chan struct{}{}, notice: make(chan struct{}), era: len(w.breaks)}
	w.openDrivers++
	w.turns++
	cfg := w.cfg.store
	cfg.Sleep = s.driver.sleep
	s.store = sqlstore.New(s.driver, cfg)
	memory := w.cfg.cache
	memory.JSON = json.New(json.Settings{View: catalogue.Release().View()})
	s.cache = cache.NewWith(catalogue, memory)
	s.Store = objects.New(catalogue, s.store, s.cache)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() {
		defer close(s.ended)
		var from int64
		for {
			var err error
			if from, err = s.cache.Load(ctx, s.store); err == nil {
				break
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
		w.mu.Lock()
		s.up = true
		w.mu.Unlock()
		var loops sync.WaitGroup
		loops.Go(func() { s.failed = s.store.Run(ctx, from, sink{s.cache, s.driver}) })
		loops.Go(func() { s.store.Lead(ctx, "job", s.job(w)) })
		loops.Go(func() { _ = s.cache.Backfill(ctx, s.store) }) // where it fails, watches read the table
		loops.Wait()
	}()
	return s
}

// job returns a job that one server at a time does.
func (s *server) job(w *world) func(context.Context) {
	count := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.jobs += n
	}
	return func(ctx context.Context) {
		count(1)
		defer count(-1)
		<-ctx.Done()
	}
}

// over reports whether all goroutines of a server have ended.
func (s *server) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// serving returns the servers that take requests.
func (w *world) serving() (all []*server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		if s.up && !s.stopping && !s.driver.dead && !s.over() {
			all = append(all, s)
		}
	}
	return all
}

func (w *world) anyServer(n uint32) *server {
	all := w.serving()
	if len(all) == 0 {
		return nil
	}
	return all[int(n)%len(all)]
}

// kill ends a server as kill -9 does. Commits that are under way may come to their end.
func (w *world) kill(s *server, fate uint32) {
	w.mu.Lock()
	s.driver.dead = true
	leads := slices.Sorted(maps.Keys(s.driver.leads))
	calls := slices.Clone(w.calls)
	open := slices.Clone(w.open)
	w.mu.Unlock()
	slices.SortFunc(calls, (*call).compare)
	for _, c := range calls {
		if c.driver != s.driver {
			continue
		}
		if c.commit != nil && !c.done {
			switch {
			case fate%3 == 0:
				w.execute(c)
			case fate%3 == 1 && !w.cfg.exclusive:
				w.late = append(w.late, c.commit)
			default:
				c.commit.never = true
			}
		}
	}
	for _, r := range open {
		if r.server == s {
			r.lost = true
		}
	}
	for _, c := range calls {
		if c.driver == s.driver {
			w.release(c, sqlstore.ErrClosed)
		}
	}
	for _, name := range leads {
		w.unlead(s.driver, name)
	}
	w.leave(s)
}

// unlead takes a lead from its holder.
func (w *world) unlead(d *driver, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := d.leads[name]; held != nil {
		delete(w.leaders, name)
		delete(d.leads, name)
		close(held)
	}
}

// leave has a server end, and disconnects its clients.
func (w *world) leave(s *server) {
	s.stopping = true
	s.stop()
	for _, r := range slices.Clone(w.open) {
		if r.server == s && r.kind != "write" { // a server that stops lets writes end
			r.lost = true
			r.cancel()
		}
	}
	for _, x := range w.watchers {
		if x.server == s {
			x.disconnect()
		}
	}
}

// record takes a commit into the truth, and hints the other servers.
func (w *world) record(m *commit) {
	for i, txn := range m.batch {
		if m.out[i].Err != nil {
			continue
		}
		for _, op := range txn.Ops {
			e := w.state(op.Key, w.head())
			if k := w.writes[string(op.Value)]; k != nil && (op.Verb != sqlstore.Delete || e == nil || e.value != string(op.Value)) {
				if k.certain {
					w.failed("%s ended with %v, and is in the table", k.request, k.request.err)
				}
				if k.seen[string(op.Value)] {
					w.failed("%s is in the table twice", k.request)
				}
				k.seen[string(op.Value)] = true
			} else if k != nil && (!k.expires || e == nil) {
				w.failed("%s of revision %d was deleted, and does not expire", op.Key, e.revision)
			} else if k != nil && e.expires.After(time.Now()) {
				w.failed("%s of revision %d was deleted as expired, %s too early", op.Key, e.revision, time.Until(e.expires))
			}
		}
	}
	if err := w.add(m); err != nil {
		w.failed("%v", err)
	}
	for _, s := range w.servers {
		s.driver.hinted = s.driver.hinted || s.driver != m.driver
	}
}

// ripe checks how much history a server's compaction drops: none that is younger than the retention. A commit
// that took long is as old as its time of writing, and so are the commits before it.
func (w *world) ripe(d *driver, to int64) {
	kept := w.cfg.store.Retention
	if log := w.cfg.store.LogRetention; log > 0 {
		kept = min(kept, log)
	}
	to = min(to, w.head())
	if to <= w.logFloor() {
		return
	}
	for r := to; r <= w.head(); r++ {
		if e := w.at(r); e.written.IsZero() || time.Since(e.written) >= kept {
			return
		}
	}
	w.failed("%s gives up history up to %d, which was written %s ago", d.server, to, time.Since(w.at(to).written))
}

// hint has the feed of a server look, if it waits for that.
func (w *world) hint(s *server) bool {
	if !s.driver.hinted {
		return false
	}
	select {
	case s.driver.hints <- struct{}{}:
		s.driver.hinted = false
		return true
	default:
		return false
	}
}

// request is one request of a client.
type request struct {
	number int
	kind   string
	about  string
	server *server
	cancel context.CancelFunc
	from   int64 // head of the table at the beginning
	shown  int64 // what had been shown to any client by then
	lost   bool  // its server was killed: the client has no answer
	err    error
	judge  func(*request) // once it has ended, unless lost
}

func (r *request) String() string {
	return fmt.Sprintf("%s %d (%s) at %s", r.kind, r.number, r.about, r.server)
}

// send starts a request.
func (w *world) send(s *server, kind, about string, do func(context.Context) error, judge func(*request)) *request {
	w.requests++
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), requestKey{}, fmt.Sprintf("request %06d", w.requests)), time.Minute)
	r := &request{number: w.requests, kind: kind, about: about, server: s, cancel: cancel, from: w.head(), shown: w.shown, judge: judge}
	w.open = append(w.open, r)
	w.say("%s begins", r)
	go func() {
		err := do(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		r.err = err
		w.finished = append(w.finished, r)
	}()
	return r
}

// settle lets all goroutines come to rest, and checks ended requests.
func (w *world) settle() {
	for w.violation == "" {
		synctest.Wait()
		w.mu.Lock()
		finished := w.finished
		w.finished = nil
		w.mu.Unlock()
		if len(finished) == 0 && !w.notify() {
			break
		}
		slices.SortFunc(finished, func(a, b *request) int { return a.number - b.number })
		for _, r := range finished {
			r.cancel()
			w.open = slices.DeleteFunc(w.open, func(o *request) bool { return o == r })
			switch {
			case r.lost:
				w.say("%s has no answer", r)
			case r.err != nil:
				w.say("%s ends: %s", r, strings.ReplaceAll(r.err.Error(), "\n", " "))
			default:
				w.say("%s ends", r)
			}
			r.judge(r)
		}
	}
	jobs := 0
	for _, s := range w.servers {
		if s.jobs > 0 && w.leaders["job"] != s.driver {
			w.failed("%s works under a lead that it does not have", s)
		}
		jobs += s.jobs
		if s.over() && !s.stopping {
			w.failed("%s has ended by itself: %v", s, s.failed)
		}
	}
	if jobs > 1 {
		w.failed("%d servers have one lead", jobs)
	}
}

// notify notifies waiting feeds that their databases went back.
func (w *world) notify() (notified bool) {
	for _, s := range w.servers {
		if !s.driver.noticed {
			continue
		}
		select {
		case s.driver.notice <- struct{}{}:
			s.driver.noticed, notified = false, true
			synctest.Wait()
		default:
		}
	}
	return notified
}

// excused reports whether an error is a fault of the database, or of the request's end, and promises nothing.
func excused(err error) bool {
	for _, e := range []error{sqlstore.ErrUnavailable, sqlstore.ErrBusy, sqlstore.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
