package reconcile

import (
	"container/heap"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/fair"
)

// Queue holds the keys that a controller has to reconcile: those that are due, whose turns, such as namespaces, are
// served round-robin, and those that are due later. An entry takes some 150 bytes.
type Queue[K, T comparable] struct {
	Clock                  func() time.Time
	Turn                   func(K) T     // a key of one turn waits for at most one key of another turn
	Debounce               time.Duration // how long a key is left alone after its last change
	MaxDebounceFactor      int           // longest wait of a key that keeps changing, as a multiple
	MinBackoff, MaxBackoff time.Duration // the backoff after a first failure, and at most
	Admit                  func(K) bool  // whether a key that is due may be worked on now; nil: all may
	Wake                   func()        // is called when there is something new, now or later, and must not wait
	Meter, Urgent          *Meter        // of keys, and of urgent ones

	mu          sync.Mutex
	start       time.Time
	entries     map[K]*entry[K]
	later       schedule[K]
	due, urgent fair.Queue[T, *entry[K]]
	workers     int
	listing     bool
	listsOld    bool // the listed objects have not changed since the server started
}

// Result determines when a key is reconciled again without a change, and its pause despite changes.
type Result struct {
	After time.Duration // 0: when it changes
	Pause time.Duration
}

// moment is a time, as elapsed since the start of a queue. 0: never.
type moment = time.Duration

// entry is a key of a queue.
type entry[K comparable] struct {
	key       K
	at        moment // when it is due, while it waits for that
	changed   moment // when it changed first since it was reconciled
	settled   moment // when it is due because it changed, unless notBefore is later
	planned   moment // when it is due at the latest
	notBefore moment // changes do not count before
	backoff   time.Duration
	revision  int64  // of the object at the last Add that named one; 0: none has
	ticket    uint64 // among those that are due
	index     int    // among those that are due later
	state     entryState
	urgent    bool
}

// entryState is the state of an entry.
type entryState uint8

const (
	idle    entryState = iota
	delayed            // until it is due
	queued
	processing // a worker has it
)

func (q *Queue[K, T]) now() moment {
	now := q.Clock()
	if q.start.IsZero() {
		q.start = now.Add(-1 << 60) // no moment is 0, even if the clock is set back
	}
	return now.Sub(q.start)
}

// in returns the moment after a while, of at most some seventy years.
func (q *Queue[K, T]) in(after time.Duration) moment { return q.now() + min(max(after, 0), 1<<61) }

func earliest(a, b moment) moment {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (q *Queue[K, T]) entry(key K) *entry[K] {
	e := q.entries[key]
	if e == nil {
		if q.entries == nil {
			q.entries = map[K]*entry[K]{}
		}
		e = &entry[K]{key: key}
		q.entries[key] = e
	}
	return e
}

// Add queues a key for when its debounce time, and its pause, are over. A revision other than the failed one does
// not wait for its backoff; 0 is no revision.
func (q *Queue[K, T]) Add(key K, revision int64) { q.add(key, revision, false) }

// AddUrgent is Add for a key with priority over all others.
func (q *Queue[K, T]) AddUrgent(key K) { q.add(key, 0, true) }

func (q *Queue[K, T]) add(key K, revision int64, urgent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, now := q.entry(key), q.now()
	if revision != 0 && revision != e.revision {
		if e.revision = revision; e.backoff > 0 {
			e.backoff, e.notBefore = 0, 0
		}
	}
	if e.changed == 0 {
		e.changed = now
	}
	switch {
	case q.listing && e.settled != 0:
	case q.listsOld:
		e.settled = now
	default:
		e.settled = min(now+q.Debounce, e.changed+time.Duration(q.MaxDebounceFactor)*q.Debounce)
	}
	if urgent && !e.urgent {
		if e.state == queued {
			q.leave(e)
		}
		e.urgent = true
	}
	q.put(e, now)
}

// list means that keys are added by a list: one that is debounced already has not changed. Old objects have not since the
// server started, and their keys are due: a server that is restarted often would never get to them.
func (q *Queue[K, T]) list(listing, old bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listing, q.listsOld = listing, old
}

// AddAfter reconciles a key after a delay at the latest, even during its pause.
func (q *Queue[K, T]) AddAfter(key K, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entry(key)
	e.planned = earliest(e.planned, q.in(after))
	q.put(e, q.now())
}

// Forget removes a key that needs no more work, unless it is due or a worker has it.
func (q *Queue[K, T]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil && e.state == delayed {
		q.leave(e)
		delete(q.entries, key)
	}
}

// AddRateLimited has a key that no worker has wait for its backoff, as if it had been reconciled without success.
func (q *Queue[K, T]) AddRateLimited(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(q.entry(key), Result{}, true)
}

// Backoff returns for how long a key was left alone after it failed last, and whether it still is; 0: it did not fail.
func (q *Queue[K, T]) Backoff(key K) (backoff time.Duration, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return 0, false
	}
	return e.backoff, e.notBefore > q.now()
}

// put puts an entry where it belongs. A worker that has it does so in the end.
func (q *Queue[K, T]) put(e *entry[K], now moment) {
	if e.state == processing || e.state == queued {
		return
	}
	at := e.planned
	if e.settled != 0 {
		at = earliest(at, max(e.settled, e.notBefore))
	}
	if at == 0 && e.notBefore > now {
		at = e.notBefore // until then the entry keeps its pause
	}
	switch {
	case at == 0 || at <= now:
		if q.leave(e); at == 0 {
			delete(q.entries, e.key)
			return
		}
		q.enter(e)
	case e.state == delayed:
		e.at = at
		heap.Fix(&q.later, e.index)
	default:
		e.at, e.state = at, delayed
		heap.Push(&q.later, e)
	}
	if q.Wake != nil {
		q.Wake()
	}
}

// enter makes an entry due.
func (q *Queue[K, T]) enter(e *entry[K]) {
	line, meter := q.line(e)
	e.state, e.ticket = queued, line.Add(q.Turn(e.key), e)
	meter.Add(1)
}

func (q *Queue[K, T]) line(e *entry[K]) (*fair.Queue[T, *entry[K]], *Meter) {
	if e.urgent {
		return &q.urgent, q.Urgent
	}
	return &q.due, q.Meter
}

// leave takes an entry away from where it waits.
func (q *Queue[K, T]) leave(e *entry[K]) {
	switch e.state {
	case delayed:
		heap.Remove(&q.later, e.index)
	case queued:
		line, meter := q.line(e)
		line.Remove(q.Turn(e.key), e.ticket)
		meter.Remove()
	}
	e.state = idle
}

// AddDue makes keys due whose time has come, and returns the number of due keys and the time until the next; 0: none waits.
func (q *Queue[K, T]) AddDue() (due int, next time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for len(q.later) > 0 && q.later[0].at <= now {
		q.put(q.later[0], now)
	}
	if len(q.later) > 0 {
		next = q.later[0].at - now
	}
	return q.due.Len() + q.urgent.Len(), next
}

// StartWorkers starts workers for the due keys, up to most at a time. A worker ends when it finds no due key.
func (q *Queue[K, T]) StartWorkers(group *sync.WaitGroup, most int, do func(K) (Result, error)) {
	q.mu.Lock()
	more := max(0, min(q.due.Len()+q.urgent.Len(), most-q.workers))
	q.workers += more
	q.mu.Unlock()
	for range more {
		group.Go(func() {
			for q.work(true, do) {
			}
		})
	}
}

// work reconciles the key whose turn it is, if there is one.
func (q *Queue[K, T]) work(worker bool, do func(K) (Result, error)) bool {
	e, meter := q.take(worker)
	if e == nil {
		return false
	}
	meter.Work(func() bool {
		r, err := do(e.key)
		q.mu.Lock()
		defer q.mu.Unlock()
		e.state = idle
		if q.end(e, r, err != nil); q.Admit != nil && q.Wake != nil {
			q.Wake() // another may be worked on now
		}
		return err == nil
	})
	return true
}

// take takes out the key whose turn it is. A worker that gets none has ended.
func (q *Queue[K, T]) take(worker bool) (*entry[K], *Meter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	may := func(_ T, e *entry[K]) bool { return q.Admit == nil || q.Admit(e.key) }
	_, e, ok := q.urgent.Next(may)
	if !ok {
		_, e, ok = q.due.Next(may)
	}
	if !ok {
		if worker {
			q.workers--
		}
		return nil, nil
	}
	_, meter := q.line(e)
	e.state, e.urgent, e.changed, e.settled, e.planned = processing, false, 0, 0, 0
	return e, meter
}

// end records the result for a key.
func (q *Queue[K, T]) end(e *entry[K], r Result, failed bool) {
	now := q.now()
	e.backoff, e.notBefore = min(max(2*e.backoff, q.MinBackoff), q.MaxBackoff), 0
	switch {
	case failed:
		e.notBefore = now + e.backoff
		e.planned = earliest(e.planned, e.notBefore)
	case r.Pause > 0:
		e.backoff, e.notBefore = 0, now+r.Pause
	default:
		e.backoff = 0
	}
	if r.After > 0 {
		e.planned = earliest(e.planned, max(q.in(r.After), e.notBefore))
	}
	q.put(e, now)
}

// schedule is a heap of entries by when they are due.
type schedule[K comparable] []*entry[K]

func (s schedule[K]) Len() int           { return len(s) }
func (s schedule[K]) Less(i, j int) bool { return s[i].at < s[j].at }
func (s schedule[K]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *schedule[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*s)
	*s = append(*s, e)
}

// Pop implements heap.Interface.
func (s *schedule[K]) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return e
}
