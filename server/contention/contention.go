// Package contention puts writers of one object in order once they get into each other's
// way.
//
// A writer tries at once, without asking anybody. One that lost to another joins the
// queue of its key, and so does everybody who comes while there is a queue; whoever is
// first in it has the turn: no other writer of the queue tries meanwhile. Users take
// turns, so that one with many writers, or slow ones, has others wait for one of
// them. Among the writers of one user a place in the queue is kept until the writer is
// done, so nobody who came later goes first.
//
// A turn is no lock. Writers that name the resource version they replace do not wait in the queue,
// as only the next write can be theirs, and other servers know nothing of it: the
// writer whose turn it is may lose again, and tries again. Only where that has happened
// patience times do those who name a resource version wait, too. And a turn ends after a while
// though its writer is not done: what it waits for may be a webhook that writes the
// same object. Each turn of a writer is twice as long as the one before, so that a
// store that is slower than the first ones lets everybody through all the same.
//
// What it costs: an entry for each request that waits or has a turn, and no goroutine.
// Requests are bounded where they come in; one that is given up leaves the queue.
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
	// first is how long the first turn of a writer lasts, at most.
	first = 2 * time.Second
	// longest bounds the doubling.
	longest = 6
	// patience is how often a writer loses in its turn before those who name a resource version
	// wait for it.
	patience = 3
	// eager is how often it tries again at once: a pause is a chance given away. After
	// that it rests briefly, in case nobody gets anywhere.
	eager   = 16
	maxRest = 20 * time.Millisecond
)

// Queues are the queues of all keys. The zero value is ready.
type Queues struct {
	mu     sync.Mutex
	queues map[sqlstore.Key]*queue
	ticket uint64
}

// queue is there as long as somebody has the turn.
type queue struct {
	turn    *Writer
	waiting fair.Queue[string, *Writer] // by user
}

// Writer is one request that writes one key, for all its tries. It is used by one
// goroutine.
type Writer struct {
	queues *Queues
	key    sqlstore.Key
	user   string
	lost   int

	// Guarded by Queues.mu.
	ticket uint64 // its place; 0: it waits in no queue
	turns  int    // how many it has had
	losses int    // in the turn that it has
	ready  chan struct{}
	timer  *time.Timer
}

// Writer begins a request of a user for key.
func (l *Queues) Writer(key sqlstore.Key, user string) Writer {
	return Writer{queues: l, key: key, user: user}
}

// Try waits until w may try, or for the end of ctx. pinned says that the client names
// the version it replaces.
func (w *Writer) Try(ctx context.Context, pinned bool) error {
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

// Lost says that another write was faster.
func (w *Writer) Lost() {
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

// join puts w into the queue, where it has to wait.
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

// next gives the turn to the first in queue.
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

// late ends a turn that lasts too long. Its writer goes on, and has its place in the
// queue if it loses.
func (l *Queues) late(key sqlstore.Key, of *queue, w *Writer, turn int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.turn == w && w.turns == turn {
		l.next(key, of)
	}
}

// Waiting counts who waits in the queue of a key, with the one whose turn it is.
func (l *Queues) Waiting(key sqlstore.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.queues[key]
	if of == nil {
		return 0
	}
	return 1 + of.waiting.Len()
}

// Rest waits for some of a short time, more of it with each try, so that those who try
// the same do not do so in step.
func Rest(ctx context.Context, try int) error {
	return rest(ctx, time.Millisecond<<min(try, 8))
}

func rest(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(rand.N(most) + 1)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
