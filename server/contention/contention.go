// Package contention orders conflicting writers of one object.
//
// A writer attempts its first write at once. After it has lost to another one it joins the queue of its key,
// as does every new writer while there is a queue. The first in the queue has the turn: no other writer of
// the queue attempts a write in the meantime. Users take turns, so that others wait for only one of the
// writers of a user that has many, or slow ones. Among the writers of one user, a writer keeps its place in
// the queue until it is done, so later ones do not overtake it.
//
// A turn is not a lock. Writers that name the resource version they replace do not wait in the queue, because
// only the next write can be theirs, and other servers do not know the queue: a writer may lose in its turn,
// and attempts the write again. Only after it has lost patience times do writers that name a resource version
// wait as well. A turn also ends after some time even if its writer is not done, because the writer may wait
// for a webhook that writes the same object. Each turn of a writer is twice as long as the previous one, so
// that a store that is slower than the first turns does not block all writers.
//
// The cost is an entry for each request that waits or has the turn; there is no goroutine. Requests are
// limited when they arrive; a canceled one leaves the queue.
package contention

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	// first is the maximum duration of a writer's first turn.
	first = 2 * time.Second
	// longest limits the doubling.
	longest = 6
	// patience is the number of conflicts of a writer in its turn after which writers that name a resource
	// version wait for it.
	patience = 3
	// eager is the number of attempts that follow each other immediately, because a pause wastes a chance.
	// After that the writer pauses briefly, in case none of them succeeds.
	eager   = 16
	maxRest = 20 * time.Millisecond
)

// Queues are the queues of all keys. The zero value is ready.
type Queues struct {
	mu     sync.Mutex
	queues map[sqlstore.Key]*queue
	ticket uint64
}

// queue exists while a writer has the turn.
type queue struct {
	turn    *Writer
	waiting fair.Queue[string, *Writer] // by user
}

// Writer is a request that writes one key, for all its attempts. It is used by one goroutine.
type Writer struct {
	queues *Queues
	key    sqlstore.Key
	user   string
	lost   int

	// Guarded by Queues.mu.
	ticket uint64 // its place; 0: not queued
	turns  int    // how many it has had
	losses int    // in its present turn
	ready  chan struct{}
	timer  *time.Timer
}

// Writer begins a user's request for key.
func (l *Queues) Writer(key sqlstore.Key, user string) Writer {
	return Writer{queues: l, key: key, user: user}
}

// Wait waits until w may attempt its write, or for the end of ctx. pinned means that the client names the
// version it replaces.
func (w *Writer) Wait(ctx context.Context, pinned bool) error {
	if w.join(pinned) {
		select {
		case <-w.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.lost > eager {
		return rest(ctx, min(maxRest, time.Millisecond<<min(w.lost-eager, 10)))
	}
	return nil
}

// Conflicted must be called when another write was faster.
func (w *Writer) Conflicted() {
	w.lost++
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	w.losses++
}

// Done ends the turn, or the wait for it.
func (w *Writer) Done() {
	if w.ready == nil {
		return
	}
	w.queues.mu.Lock()
	defer w.queues.mu.Unlock()
	l := w.queues.queues[w.key]
	switch {
	case l == nil:
	case l.turn == w:
		w.timer.Stop()
		w.queues.next(w.key, l)
	default:
		l.waiting.Remove(w.user, w.ticket)
	}
}

// join queues w if it has to wait.
func (w *Writer) join(pinned bool) bool {
	all := w.queues
	all.mu.Lock()
	defer all.mu.Unlock()
	l := all.queues[w.key]
	switch {
	case l == nil && (w.lost == 0 || pinned):
		return false
	case l != nil && l.turn == w:
		return false
	case l != nil && pinned && l.turn.losses < patience:
		return false
	}
	begun := l == nil
	if begun {
		l = &queue{}
		if all.queues == nil {
			all.queues = make(map[sqlstore.Key]*queue)
		}
		all.queues[w.key] = l
	}
	if w.ticket == 0 {
		all.ticket++
		w.ticket = all.ticket
	}
	w.ready = make(chan struct{})
	l.waiting.Return(w.user, w.ticket, w)
	if begun {
		all.next(w.key, l)
	}
	return true
}

// next gives the turn to the first in the queue.
func (l *Queues) next(key sqlstore.Key, of *queue) {
	_, w, ok := of.waiting.Next(nil)
	if !ok {
		of.turn = nil
		delete(l.queues, key)
		return
	}
	lasts := first << min(w.turns, longest)
	w.turns++
	of.turn, w.losses = w, 0
	turn := w.turns
	w.timer = time.AfterFunc(lasts, func() { l.late(key, of, w, turn) })
	close(w.ready)
}

// late ends a turn that takes too long. Its writer continues, and keeps its place in the queue if it loses.
func (l *Queues) late(key sqlstore.Key, of *queue, w *Writer, turn int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.turn == w && w.turns == turn {
		l.next(key, of)
	}
}

// Waiting counts the writers in the queue of a key, including the one that has the turn.
func (l *Queues) Waiting(key sqlstore.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.queues[key]
	if of == nil {
		return 0
	}
	return 1 + of.waiting.Len()
}

// Backoff waits for a short random time, which grows with each attempt, so that competing clients do not retry
// in step.
func Backoff(ctx context.Context, try int) error {
	return rest(ctx, time.Millisecond<<min(try, 8))
}

func rest(ctx context.Context, most time.Duration) error {
	if !sqlstore.Sleep(ctx, rand.N(most)+1) {
		return ctx.Err()
	}
	return nil
}
