// Package fair decides which waiting request is next.
//
// Everything that waits does so under a key, usually a user or a namespace, and keys take turns: a key with a
// thousand waiting requests delays another key by one of them. A Queue is the order itself, for work that is
// fetched; in a Gate requests wait for their turn.
//
// The cost is an entry for each waiting value and for each key that has one; there is no goroutine. Nothing
// remains of a key when nothing waits under it. Callers bound what waits: by the requests that the server
// admits, or with Queue.Waiting.
package fair

import (
	"cmp"
	"errors"
	"slices"
)

// ErrFull is for owners of a Queue that bound it: too many wait already.
var ErrFull = errors.New("too many wait for their turn")

// Queue orders waiting values: the next one is the oldest value of the key whose last turn was longest ago.
//
// A key that begins to wait comes after all other waiting keys, but before the one that had the last turn. So
// a key that always has more values waits for each of the others once, and no key can overtake repeatedly by
// coming back.
//
// The zero Queue is empty. It is not safe for concurrent use.
type Queue[K comparable, V any] struct {
	flows       map[K]*flow[K, V] // with waiting values
	first, last *flow[K, V]       // the same, in the order of their turns
	served      K                 // had the last turn
	any         bool              // some key had one
	length      int
	tickets     uint64
}

// flow holds the values that wait under one key.
type flow[K comparable, V any] struct {
	key           K
	values        []waiting[V] // by ticket
	before, after *flow[K, V]
}

type waiting[V any] struct {
	ticket uint64
	value  V
}

// Len returns the number of waiting values.
func (q *Queue[K, V]) Len() int { return q.length }

// Waiting returns the number of values that wait under a key.
func (q *Queue[K, V]) Waiting(key K) int {
	if f := q.flows[key]; f != nil {
		return len(f.values)
	}
	return 0
}

// Add adds a value under a key. The ticket is its place among the values of the key.
func (q *Queue[K, V]) Add(key K, v V) (ticket uint64) {
	q.tickets++
	q.Return(key, q.tickets, v)
	return q.tickets
}

// Return adds a value at the place of a ticket from Add, before all later ones of its key. A caller that
// numbers the values of several queues uses its own tickets, and never calls Add.
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

// Remove removes a value; false: it does not wait.
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

// Peek returns the next value, among the keys whose first value may allows; nil: all.
func (q *Queue[K, V]) Peek(may func(K, V) bool) (key K, v V, ok bool) {
	for f := q.first; f != nil; f = f.after {
		if v := f.values[0].value; may == nil || may(f.key, v) {
			return f.key, v, true
		}
	}
	return key, v, false
}

// Next removes the value that Peek returns: its key has its turn.
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

// Serve records a turn of a key, even if nothing waited under it.
func (q *Queue[K, V]) Serve(key K) { q.served, q.any = key, true }

// find returns the position of a ticket among the values, and whether it is there.
func (f *flow[K, V]) find(ticket uint64) (int, bool) {
	return slices.BinarySearchFunc(f.values, ticket, func(w waiting[V], t uint64) int { return cmp.Compare(w.ticket, t) })
}

// enter adds a flow to the order of turns.
func (q *Queue[K, V]) enter(f *flow[K, V]) {
	if last := q.last; last != nil && q.any && last.key == q.served {
		f.before, f.after = last.before, last
	} else {
		f.before, f.after = last, nil
	}
	q.link(f, f, f)
}

// leave removes a flow from the order of turns.
func (q *Queue[K, V]) leave(f *flow[K, V]) {
	q.link(f, f.after, f.before)
	f.before, f.after = nil, nil
}

// link sets the neighbours of a flow.
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
