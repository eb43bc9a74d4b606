package garbage

import (
	"container/heap"
	"sync"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/fair"
)

// How long an object rests that could not be dealt with: longer each time.
const (
	firstRest = 10 * time.Millisecond
	longRest  = 5 * time.Minute
)

// namespace is what takes turns.
type namespace = unique.Handle[string]

// queue holds the objects to look at: those that are due, of which namespaces take turns, so
// that many in one do not keep another waiting, and those that are due later. An object is in
// it once, and is worked on by one at a time.
type queue struct {
	clock func() time.Time
	added func() // is told that there is something new, now or later; must not wait
	meter func() // is told of each that becomes due

	mu      sync.Mutex
	entries map[graph.ID]*entry
	due     fair.Queue[namespace, *entry]
	later   schedule
	workers int
}

// entry is an object to look at. It takes some hundred bytes.
type entry struct {
	id    graph.ID
	in    namespace
	due   time.Time
	rest  time.Duration
	index int // in the schedule
	place place
}

// place is where an entry is.
type place uint8

const (
	waits  place = iota // in the schedule
	stands              // among those that are due
	runs                // worked on
	reruns              // worked on, and to be looked at again at due
)

func newQueue(clock func() time.Time, added, meter func()) *queue {
	return &queue{clock: clock, added: added, meter: meter, entries: map[graph.ID]*entry{}}
}

// add has an object looked at after a while, or earlier if it is to be earlier anyway.
func (q *queue) add(what graph.Look, after time.Duration) {
	due := q.clock().Add(after)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[what.ID]
	switch {
	case e == nil:
		e = &entry{id: what.ID, in: what.Namespace, due: due, index: -1}
		q.entries[what.ID] = e
		q.put(e, after <= 0)
	case e.place == waits && due.Before(e.due):
		heap.Remove(&q.later, e.index)
		e.due = due
		q.put(e, after <= 0)
	case e.place == runs || e.place == reruns && due.Before(e.due):
		e.place, e.due = reruns, due
	}
}

func (q *queue) put(e *entry, now bool) {
	defer q.added()
	if !now {
		e.place = waits
		heap.Push(&q.later, e)
		return
	}
	e.place = stands
	q.due.Add(e.in, e)
	q.meter()
}

// ripen moves what is due by now to where it is taken, and says when the next one is due.
func (q *queue) ripen() (next time.Time, any bool) {
	now := q.clock()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.later) > 0 && !now.Before(q.later[0].due) {
		q.put(heap.Pop(&q.later).(*entry), true)
	}
	if len(q.later) == 0 {
		return next, false
	}
	return q.later[0].due, true
}

// hire says how many workers are to begin, of which there are most at most. Each takes what
// there is until next says that there is nothing.
func (q *queue) hire(most int) (workers int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	workers = max(0, min(q.due.Len(), most-q.workers))
	q.workers += workers
	return workers
}

// next takes an object to work on; done must be called with it. Where there is none the
// worker ends.
func (q *queue) next() (e *entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, e, ok = q.due.Next(nil); !ok {
		q.workers--
		return nil, false
	}
	e.place = runs
	return e, true
}

// done says that the work for an object has ended: well, or so that it is tried again after
// a rest, which is returned.
func (q *queue) done(e *entry, again bool) (rest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rerun := e.place == reruns
	if !again {
		e.rest = 0
	} else {
		e.rest = min(max(2*e.rest, firstRest), longRest)
		if due := q.clock().Add(e.rest); !rerun || due.Before(e.due) {
			e.due = due
		}
	}
	if !again && !rerun {
		delete(q.entries, e.id)
		return 0
	}
	q.put(e, !q.clock().Before(e.due))
	return e.rest
}

// schedule is a heap of entries by when they are due.
type schedule []*entry

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	e := x.(*entry)
	e.index = len(*s)
	*s = append(*s, e)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	e.index = -1
	return e
}
