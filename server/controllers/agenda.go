package controllers

import (
	"container/heap"
	"time"
)

// managerAgent begins the user agent of what controllers do that a kube-controller-manager
// has elsewhere, and so is their field manager; the name of their service account follows.
const managerAgent = "kube-controller-manager/rowlock/system:serviceaccount:kube-system:"

// agenda is the keyed work of a controller: what is to be looked at, and when. A key is on
// it once, however often it is asked for, so that what changes a thousand times a second
// is looked at as often as the controller has time.
type agenda struct {
	// settle is how long a key is left alone after it was asked for last, and a fifth of
	// how long it is left alone at most.
	settle time.Duration
	// first and longest are how long a key rests after a failure, twice as long each time.
	first, longest time.Duration
	queue          *Queue // nil: the work is not measured

	all  map[objectKey]*due
	heap dues        // those that wait for their time
	line []objectKey // those whose time has come, in the order in which it did
}

// due is a key of an agenda.
type due struct {
	key   objectKey
	at    time.Time
	since time.Time     // when it was asked for first since it was looked at; zero: it was not
	rest  time.Duration // after the last failure; 0: it did not fail
	floor time.Time     // it is not looked at before
	idle  bool          // nothing is to be done for it, if nobody asks
	index int           // in the heap; inLine or looked where it is not there
}

const (
	inLine = -1 - iota // its time has come
	looked             // it is looked at now
)

// mostSettling is how many times its settling time a key waits at most.
const mostSettling = 5

func (a *agenda) entry(key objectKey) *due {
	d := a.all[key]
	if d == nil {
		if a.all == nil {
			a.all = map[objectKey]*due{}
		}
		d = &due{key: key, index: looked}
		a.all[key] = d
	}
	return d
}

// touch asks for a key to be looked at as soon as it has settled, or rested after a failure.
func (a *agenda) touch(key objectKey, now time.Time) {
	d := a.entry(key)
	if d.index == inLine {
		return
	}
	if d.since.IsZero() {
		d.since = now
	}
	at := now.Add(a.settle)
	if last := d.since.Add(mostSettling * a.settle); at.After(last) {
		at = last
	}
	d.idle = false
	a.put(d, at)
}

// until has a key looked at when a time has come, and not before unless it is touched.
func (a *agenda) until(key objectKey, at time.Time) {
	d := a.entry(key)
	d.since, d.rest, d.idle = time.Time{}, 0, false
	a.put(d, at)
}

// fail has a key looked at again, later each time.
func (a *agenda) fail(key objectKey, now time.Time) {
	d := a.entry(key)
	d.since, d.rest = time.Time{}, min(max(2*d.rest, a.first), a.longest)
	d.floor, d.idle = now.Add(d.rest), false
	a.put(d, d.floor)
}

// rest has nothing done for a key for some time; what asks for it meanwhile waits until then.
func (a *agenda) rest(key objectKey, now time.Time, rest time.Duration) {
	d := a.entry(key)
	d.since, d.rest, d.floor, d.idle = time.Time{}, 0, now.Add(rest), true
	a.put(d, d.floor)
}

// forget is told of a key that there is nothing more to do for.
func (a *agenda) forget(key objectKey) {
	if d := a.all[key]; d != nil && d.index == looked {
		delete(a.all, key)
	}
}

// drop takes a key off the agenda that is not there any more.
func (a *agenda) drop(key objectKey) {
	d := a.all[key]
	if d == nil || d.index == inLine { // it is found out when its turn comes
		return
	}
	if d.index >= 0 {
		heap.Remove(&a.heap, d.index)
	}
	delete(a.all, key)
}

func (a *agenda) put(d *due, at time.Time) {
	if d.floor.After(at) {
		at = d.floor
	}
	switch d.at = at; {
	case d.index >= 0:
		heap.Fix(&a.heap, d.index)
	case d.index == looked:
		heap.Push(&a.heap, d)
	}
}

// ripen puts what is due into the line.
func (a *agenda) ripen(now time.Time) {
	for len(a.heap) > 0 && !now.Before(a.heap[0].at) {
		d, ok := heap.Pop(&a.heap).(*due)
		if !ok {
			return
		}
		if d.idle {
			delete(a.all, d.key)
			continue
		}
		d.index = inLine
		a.line = append(a.line, d.key)
		a.queue.Add(1)
	}
}

// take is the key to look at now. What becomes of it is to be told by until, fail or
// forget.
func (a *agenda) take() (key objectKey, ok bool) {
	if len(a.line) == 0 {
		return key, false
	}
	key = a.line[0]
	if a.line = a.line[1:]; len(a.line) == 0 {
		a.line = nil
	}
	d := a.all[key]
	d.index, d.since = looked, time.Time{}
	return key, true
}

// clear forgets everything.
func (a *agenda) clear() {
	a.all, a.heap, a.line = nil, nil, nil
	a.queue.Clear()
}

// dues implements heap.Interface by time.
type dues []*due

func (l dues) Len() int           { return len(l) }
func (l dues) Less(i, j int) bool { return l[i].at.Before(l[j].at) }

func (l dues) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

func (l *dues) Push(x any) {
	if d, ok := x.(*due); ok {
		d.index = len(*l)
		*l = append(*l, d)
	}
}

func (l *dues) Pop() any {
	old := *l
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return d
}
