package quota

import (
	"context"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/server/admission"
)

// queuedCheck is a write that waits for the check of its namespace's quotas; err is the result.
type queuedCheck struct {
	a     *admission.Attributes
	meter *meter
	err   error
}

// checkBatches batch the writes of each namespace: one writer at a time checks its own write and those of all that
// wait behind it. The writers' own goroutines do the work.
type checkBatches struct {
	mu   sync.Mutex
	open map[string]*checkBatch
}

type checkBatch struct {
	turn    chan struct{} // a lock: holds a value while a batch is checked
	waiting []*queuedCheck
	inside  int
}

// run queues a write for a namespace and returns its result. settle must complete all writes of its batch.
func (l *checkBatches) run(ctx context.Context, namespace string, k *queuedCheck, settle func(context.Context, string, []*queuedCheck)) error {
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
	}
	// If the batch did not contain this write, another writer has completed it before.
	return k.err
}

func (l *checkBatches) enter(namespace string, k *queuedCheck) *checkBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.open[namespace]
	if w == nil {
		if l.open == nil {
			l.open = map[string]*checkBatch{}
		}
		w = &checkBatch{turn: make(chan struct{}, 1)}
		l.open[namespace] = w
	}
	w.inside++
	w.waiting = append(w.waiting, k)
	return w
}

// leave removes a write that no batch has taken, as when its request was cancelled.
func (l *checkBatches) leave(namespace string, w *checkBatch, k *queuedCheck) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(w.waiting, k); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	if w.inside--; w.inside == 0 {
		delete(l.open, namespace)
	}
}
