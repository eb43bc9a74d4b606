package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/ratelog"
)

// Source is a storage that a loop watches.
type Source struct {
	Storage string
	Scope   cache.Scope
	// Seen receives each object that exists when the watch begins, and each that is added or modified later; nil: none.
	Seen func(item *cache.Item)
	// Gone receives each object that is deleted; nil: none.
	Gone func(item *cache.Item)
	// Changed, if set, receives the events in place of Seen and Gone.
	Changed func(d cache.Delivery)
	// Lost is called when the watch ends, because the storage is no longer served as it was or changes too fast; nil: the
	// loop lists all its sources again.
	Lost func()
}

// Loop runs a controller: it watches its sources, which put keys into its work queue, and reconciles the keys that are due.
type Loop struct {
	Base
	Queue *Queue[Key, string] // there while Run works
	// Reconcile reconciles a key. After an error the loop logs it, and tries again after a backoff; a Superseded error counts
	// as success.
	Reconcile func(ctx context.Context, key Key) (Result, error)
	// Failure is the log message for a key that could not be reconciled.
	Failure string
	// Begin is called before the sources are listed, while no worker works: at the start, after each Resync, after a watch was
	// cut off, and unreadRest after a source read an object that cannot be decoded. If it fails, the loop calls it again after Retry. May be nil.
	Begin   func(ctx context.Context) error
	Sources []Source
	Keys    []Key // are planned at once then
	// Resync is the interval of listing the sources again. 0: never.
	Resync time.Duration
	// Poll is called whenever the loop checks for due keys, and returns when to call it again at the latest; 0: no time is
	// set. Nil: there is nothing to poll.
	Poll func() time.Duration
	// A value on Signal makes the loop call Signalled; may be nil.
	Signal    func() <-chan struct{}
	Signalled func()
	Longest   time.Duration // the longest backoff; 0: LongestBackoff
	// MaxDebounceFactor limits the wait of a key that keeps changing, as a multiple of the debounce time. 0: 5.
	MaxDebounceFactor int
	// Workers is the number of goroutines that reconcile keys. 0: the goroutine of Run reconciles one key at a time, and
	// calls everything else too.
	Workers int
	// Share is the pause of a loop of one worker after each reconciliation, as a multiple of its duration, a second at most.
	Share int

	wakes    chan struct{}
	paused   time.Time // nothing is reconciled before
	relist   time.Time // when the sources are listed again; zero: not yet planned
	failures ratelog.Line
	watches  []watch
	given    int                  // the number of those of Sources, which are first
	cases    []reflect.SelectCase // the channels of watches follow the first ones
	batch    []cache.Delivery     // reused
}

type watch struct {
	Source
	*cache.Watcher
}

// Channels on which a loop waits; those of its watches follow.
const (
	ends = iota
	wakes
	timed
	clockMoved
	signals
	firstWatch
)

const (
	// longestWait bounds the wait for work that is due later: the clock may be set in the meantime.
	longestWait = time.Minute
	// longestPause limits the pause of Share.
	longestPause = time.Second
	// unreadRest is the delay before the sources are listed again after an object could not be read.
	unreadRest = time.Minute
	// maxFailures are logged a minute; more are at the debug level.
	maxFailures = 30
)

// Objects returns a source whose keys are its objects, those that counts selects; nil: all.
func (l *Loop) Objects(storage string, counts func(*cache.Item) bool) Source {
	return Source{
		Storage: storage,
		Seen: func(item *cache.Item) {
			if counts == nil || counts(item) {
				l.Queue.Add(KeyOf(item), item.Revision)
			}
		},
		Gone: func(item *cache.Item) { l.Queue.Forget(KeyOf(item)) },
	}
}

// Namespaces returns a source that has each namespace reconciled, under a key without a name, when it is there or changes.
func (l *Loop) Namespaces() Source {
	return Source{Storage: "namespaces", Seen: func(item *cache.Item) { l.Queue.Add(Key{Namespace: item.Name}, 0) }}
}

// Run works until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	if l.Clock == nil {
		l.Clock = time.Now
	}
	l.Retry = cmp.Or(l.Retry, time.Second)
	l.Longest, l.MaxDebounceFactor = cmp.Or(l.Longest, LongestBackoff), cmp.Or(l.MaxDebounceFactor, 5)
	l.failures = ratelog.Line{Most: maxFailures}
	l.wakes = make(chan struct{}, 1)
	if l.Queue == nil {
		l.Queue = &Queue[Key, string]{}
	}
	q := l.Queue
	q.Clock, q.Turn, q.Debounce, q.MinBackoff, q.MaxBackoff, q.Meter = l.Clock, func(k Key) string { return k.Namespace }, l.Debounce, l.Retry, l.Longest, l.Meter
	q.Wake = func() {
		select {
		case l.wakes <- struct{}{}:
		default:
		}
	}
	q.MaxDebounceFactor = l.MaxDebounceFactor
	defer q.Meter.Clear()
	defer q.Urgent.Clear()
	var workers sync.WaitGroup
	defer workers.Wait()
	for ctx.Err() == nil {
		var err error
		unread := cache.Try(func() {
			if err = l.begin(ctx, &workers); err == nil {
				l.run(ctx, &workers)
			}
		})
		if err = cmp.Or(unread, err); err != nil {
			l.Failed(ctx, Key{}, err)
			select {
			case <-ctx.Done():
			case <-time.After(l.Retry):
			}
		}
	}
	return nil
}

func (l *Loop) begin(ctx context.Context, workers *sync.WaitGroup) error {
	if l.Begin == nil {
		return nil
	}
	workers.Wait() // which may use the result
	return l.Begin(ctx)
}

// Failed logs that a key could not be reconciled.
func (l *Loop) Failed(ctx context.Context, key Key, err error) {
	if ctx.Err() != nil {
		return
	}
	args := []any{"error", err}
	if key.Name != "" {
		args = append([]any{"name", key.Name}, args...)
	}
	if key.Namespace != "" {
		args = append([]any{"namespace", key.Namespace}, args...)
	}
	l.failures.Log(ctx, l.Log, slog.LevelWarn, l.Failure, args...)
}

// Watch watches a source from now on, and passes the existing objects to it.
func (l *Loop) Watch(ctx context.Context, s Source) { l.list(ctx, s, l.watch(s)) }

func (l *Loop) watch(s Source) *cache.Snapshot {
	w, snapshot := l.Cache.WatchNow(s.Storage, s.Scope)
	l.watches = append(l.watches, watch{s, w})
	l.cases = append(l.cases, receive(w.Ready()))
	return snapshot
}

func (l *Loop) list(ctx context.Context, s Source, there *cache.Snapshot) {
	if s.Seen == nil {
		return
	}
	defer l.Queue.list(false, false)
	there.Ascend("", "", "", func(item *cache.Item) bool {
		l.Queue.list(true, item.Revision <= l.Start)
		l.show(ctx, item, s.Seen)
		return ctx.Err() == nil
	})
}

// show hands an object to a function of a source. If the object cannot be read, it logs that, and the loop leaves the object out
// until it lists again.
func (l *Loop) show(ctx context.Context, item *cache.Item, to func(*cache.Item)) {
	if err := cache.Try(func() { to(item) }); err != nil {
		l.Failed(ctx, KeyOf(item), err)
		if again := l.Clock().Add(unreadRest); l.relist.IsZero() || again.Before(l.relist) {
			l.relist = again
		}
	}
}

// Leave ends the watches of the storages for which gone is true.
func (l *Loop) Leave(gone func(storage string) bool) {
	for i := len(l.watches) - 1; i >= l.given; i-- {
		if gone(l.watches[i].Storage) {
			l.end(i)
		}
	}
}

func (l *Loop) end(i int) {
	l.watches[i].Stop()
	last := len(l.watches) - 1
	l.watches[i], l.cases[firstWatch+i] = l.watches[last], l.cases[firstWatch+last]
	l.watches, l.cases = l.watches[:last], l.cases[:firstWatch+last]
}

// run works until ctx ends, Resync is due, or a watch was cut off because changes were too fast.
func (l *Loop) run(ctx context.Context, workers *sync.WaitGroup) {
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	l.cases = []reflect.SelectCase{ends: receive(ctx.Done()), wakes: receive(l.wakes), timed: receive(timer.C), clockMoved: {}, signals: {Dir: reflect.SelectRecv}}
	defer func() {
		l.given = 0
		l.Leave(func(string) bool { return true })
	}()
	if l.relist = (time.Time{}); l.Resync > 0 {
		l.relist = l.Clock().Add(l.Resync)
	}
	there := make([]*cache.Snapshot, len(l.Sources))
	for i, s := range l.Sources { // all are watched before anything is listed
		there[i] = l.watch(s)
	}
	l.given = len(l.Sources)
	for _, key := range l.Keys {
		l.Queue.AddAfter(key, 0)
	}
	for i, s := range l.Sources {
		l.list(ctx, s, there[i])
	}
	for ctx.Err() == nil {
		l.cases[clockMoved] = receive(l.Moves.Next())
		if l.Signal != nil {
			l.cases[signals] = receive(l.Signal())
		}
		now, wait := l.Clock(), longestWait
		if !l.relist.IsZero() {
			left := l.relist.Sub(now)
			if left <= 0 {
				return
			}
			wait = min(wait, left)
		}
		if l.Poll != nil {
			if next := l.Poll(); next > 0 {
				wait = min(wait, next)
			}
		}
		due, next := l.Queue.AddDue()
		if next > 0 {
			wait = min(wait, next)
		}
		cases := l.cases
		pause := l.paused.Sub(now)
		switch {
		case due == 0:
		case l.Workers > 0:
			l.Queue.StartWorkers(workers, l.Workers, func(key Key) (Result, error) { return l.reconcile(ctx, key) })
			due = 0
		case pause > 0:
			wait, due = min(wait, pause), 0
		default: // it is only looked whether something has changed
			cases = append(cases[:len(cases):len(cases)], reflect.SelectCase{Dir: reflect.SelectDefault})
		}
		timer.Reset(wait)
		switch i, _, _ := reflect.Select(cases); {
		case i == signals:
			l.Signalled()
		case i >= firstWatch && i < len(l.cases):
			if !l.take(ctx, i-firstWatch) {
				return
			}
		}
		if due > 0 && ctx.Err() == nil {
			began := l.Clock()
			l.Queue.work(false, func(key Key) (Result, error) { return l.reconcile(ctx, key) })
			if l.Share > 0 {
				now := l.Clock()
				l.paused = now.Add(min(time.Duration(l.Share)*now.Sub(began), longestPause))
			}
		}
	}
}

// take hands on the changes of a source once readers of the cache see them, and reports whether the run continues.
func (l *Loop) take(ctx context.Context, i int) bool {
	batch, _, err := l.watches[i].Take(ctx, l.batch)
	s := l.watches[i].Source
	switch {
	case err == nil:
	case s.Lost == nil:
		return false
	default:
		l.end(i)
		s.Lost()
		return true
	}
	l.batch = batch
	if n := len(batch); n > 0 && l.Cache.WaitFor(ctx, batch[n-1].Revision()) != nil {
		return false // ctx has ended
	}
	for _, d := range batch {
		switch {
		case s.Changed != nil:
			l.show(ctx, d.Event.Item, func(*cache.Item) { s.Changed(d) })
		case d.Type != cache.Deleted && s.Seen != nil:
			l.show(ctx, d.Item(), s.Seen)
		case d.Type == cache.Deleted && s.Gone != nil:
			l.show(ctx, d.Item(), s.Gone)
		}
	}
	return true
}

func (l *Loop) reconcile(ctx context.Context, key Key) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, nil
	}
	var r Result
	var err error
	if unread := cache.Try(func() { r, err = l.Reconcile(ctx, key) }); unread != nil {
		err = unread
	}
	switch {
	case err == nil, ctx.Err() != nil, Superseded(err):
		return r, nil // the watch delivers the other write
	case !errors.Is(err, ErrRetry):
		l.Failed(ctx, key, err)
	}
	return r, err
}

func receive(channel any) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(channel)}
}
