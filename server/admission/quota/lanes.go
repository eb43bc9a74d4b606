package quota

import (
	"context"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/server/admission"
)

// ask is one write that waits for its answer: err once it has left its lane.
type ask struct {
	a     *admission.Attributes
	meter *meter
	err   error
	done  bool
}

// lanes let one writer of each namespace at a time through, who takes the asks of
// all that wait with it. Nothing runs but the writers' own goroutines.
type lanes struct {
	mu   sync.Mutex
	open map[string]*lane
}

type lane struct {
	turn    chan struct{} // holds a token while somebody settles
	waiting []*ask
	inside  int
}

// run puts an ask in the lane of a namespace and returns its answer. settle must
// answer all that it is given.
func (l *lanes) run(ctx context.Context, namespace string, k *ask, settle func(context.Context, string, []*ask)) error {
	w := l.enter(namespace, k)
	defer l.leave(namespace, w, k)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	l.mu.Lock()
	batch := w.waiting
	w.waiting = nil
	l.mu.Unlock()
	if len(batch) > 0 {
		settle(ctx, namespace, batch)
		for _, b := range batch {
			b.done = true
		}
	}
	// Whoever took this ask along held the turn before.
	return k.err
}

func (l *lanes) enter(namespace string, k *ask) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.open[namespace]
	if w == nil {
		if l.open == nil {
			l.open = map[string]*lane{}
		}
		w = &lane{turn: make(chan struct{}, 1)}
		l.open[namespace] = w
	}
	w.inside++
	w.waiting = append(w.waiting, k)
	return w
}

// leave takes an ask that nobody took along out of its lane.
func (l *lanes) leave(namespace string, w *lane, k *ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(w.waiting, k); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	if w.inside--; w.inside == 0 {
		delete(l.open, namespace)
	}
}
