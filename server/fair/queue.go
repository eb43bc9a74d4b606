// Package fair decides who is next where many wait for what few can have at once.
//
// Whatever waits does so under a key, which is mostly a user or a namespace, and keys take turns: a key
// under which a thousand requests wait keeps another one waiting for one of them. A Queue is the order by
// itself, for work that is fetched; in a Gate requests wait for their turn.
//
// What it costs: an entry for each value that waits and for each key that has one, and no goroutine. Nothing is kept
// of a key once nothing waits under it. What waits is bounded by the callers: by the requests that
// the server lets in, or by what Queue.Waiting says.
package fair

import (
	"cmp"
	"errors"
	"slices"
)

// ErrFull is for owners of a Queue that bound what waits: as much waits already as may.
var ErrFull = errors.New("too many wait for their turn")

// Queue holds values that wait, in the order in which they have their turns: of all keys, the one whose last turn was
// longest ago is next, with the value of it that came first.
//
// A key that begins to wait comes after all others that wait, but before the one that had the last turn. So a
// key that always has more waits for each of the others once, and nobody who comes back again and again
// overtakes for ever.
//
// The zero Queue is empty. It is not safe for concurrent use.
type Queue[K comparable, V any] struct {
	flows       map[K]*flow[K, V] // with something that waits
	first, last *flow[K, V]       // the same, in the order of their turns
	served      K                 // had the last turn
	any         bool              // some key had one
	length      int
	tickets     uint64
}

// flow is what waits under one key.
type flow[K comparable, V any] struct {
	key           K
	values        []waiting[V] // by ticket
	before, after *flow[K, V]
}

type waiting[V any] struct {
	ticket uint64
	value  V
}

// Len is how many values wait.
func (q *Queue[K, V]) Len() int { return q.length }

// Waiting is how many values wait under a key.
func (q *Queue[K, V]) Waiting(key K) int {
	if f := q.flows[key]; f != nil {
		return len(f.values)
	}
	return 0
}

// Add has a value wait under a key. The ticket is its place among the values of the key.
func (q *Queue[K, V]) Add(key K, v V) (ticket uint64) {
	q.tickets++
	q.Return(key, q.tickets, v)
	return q.tickets
}

// Return has a value wait at the place of a ticket that Add gave it before, ahead of all that came later under its key.
// A caller that numbers what comes to several queues gives its own tickets, and never calls Add.
func (q *Queue[K, V]) Return(key K, ticket uint64, v V) {
	f := q.flows[key]
	if f == nil {
		f = &flow[K, V]{key: key}
		if q.flows == nil {
			q.flows = make(map[K]*flow[K, V])
		}
		q.flows[key] = f
		q.enter(f)
	}
	i, _ := f.find(ticket)
	f.values = slices.Insert(f.values, i, waiting[V]{ticket, v})
	q.length++
}

// Remove takes out a value that waits no more. It is false for one that does not wait.
func (q *Queue[K, V]) Remove(key K, ticket uint64) bool {
	f := q.flows[key]
	if f == nil {
		return false
	}
	i, ok := f.find(ticket)
	if !ok {
		return false
	}
	f.values = slices.Delete(f.values, i, i+1)
	q.length--
	if len(f.values) == 0 {
		q.leave(f)
		delete(q.flows, key)
	}
	return true
}

// Peek shows the value whose turn is next, of the keys whose first value may go; nil: of all.
func (q *Queue[K, V]) Peek(may func(K, V) bool) (key K, v V, ok bool) {
	for f := q.first; f != nil; f = f.after {
		if v := f.values[0].value; may == nil || may(f.key, v) {
			return f.key, v, true
		}
	}
	return key, v, false
}

// Next takes out the value that Peek shows: its key has its turn.
func (q *Queue[K, V]) Next(may func(K, V) bool) (key K, v V, ok bool) {
	key, v, ok = q.Peek(may)
	if !ok {
		return key, v, false
	}
	q.Serve(key)
	f := q.flows[key]
	f.values[0] = waiting[V]{}
	f.values = f.values[1:]
	q.length--
	q.leave(f)
	if len(f.values) > 0 {
		q.enter(f)
	} else {
		delete(q.flows, key)
	}
	return key, v, true
}

// Serve notes that a key has a turn, also where nothing waited for it.
func (q *Queue[K, V]) Serve(key K) { q.served, q.any = key, true }

// find says where among the values a ticket is, or would be.
func (f *flow[K, V]) find(ticket uint64) (int, bool) {
	return slices.BinarySearchFunc(f.values, ticket, func(w waiting[V], t uint64) int { return cmp.Compare(w.ticket, t) })
}

// enter puts a flow at its place in the order of turns.
func (q *Queue[K, V]) enter(f *flow[K, V]) {
	if last := q.last; last != nil && q.any && last.key == q.served {
		f.before, f.after = last.before, last
	} else {
		f.before, f.after = last, nil
	}
	q.link(f, f, f)
}

// leave takes a flow out of the order of turns.
func (q *Queue[K, V]) leave(f *flow[K, V]) {
	q.link(f, f.after, f.before)
	f.before, f.after = nil, nil
}

// link has what comes before a flow be followed by next, and what comes after it follow previous.
func (q *Queue[K, V]) link(f, next, previous *flow[K, V]) {
	if f.before != nil {
		f.before.after = next
	} else {
		q.first = next
	}
	if f.after != nil {
		f.after.before = previous
	} else {
		q.last = previous
	}
}
