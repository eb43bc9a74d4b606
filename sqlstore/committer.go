package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// write is one Txn in progress. done is closed once out is set.
type write struct {
	txn  Txn // as it is stored
	size int
	// plain has the values that the sink gets; nil: the stored ones.
	plain []opened
	out   Outcome
	// returned is the driver's RewindCount before the commit.
	returned int64
	// unstage ends the staging of the values; nil: none is staged.
	unstage func(committed bool)
	done    chan struct{}
}

func (w *write) finish(out Outcome) {
	w.out = out
	w.release(out.Err == nil)
	close(w.done)
}

// release ends the staging of values.
func (w *write) release(committed bool) {
	if w.unstage != nil {
		w.unstage(committed)
	}
}

// finished reports whether the writer has the outcome.
func (w *write) finished() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queue holds the writes that wait for a commit, in order.
type queue struct {
	mu   sync.Mutex
	list []*write
	wake chan struct{}
}

func (q *queue) add(w *write) {
	q.mu.Lock()
	q.list = append(q.list, w)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the first writes that fit into one batch.
func (q *queue) take(most, size int) []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, sum := 0, 0
	for n < len(q.list) && n < most {
		sum += q.list[n].size
		if n > 0 && sum > size {
			break
		}
		n++
	}
	batch := q.list[:n:n]
	if q.list = q.list[n:]; len(q.list) == 0 {
		q.list = nil
	}
	return batch
}

// drop removes a write whose caller has stopped waiting; it returns false if the write is in progress.
func (q *queue) drop(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.list {
		if q.list[i] == w {
			rest := make([]*write, 0, len(q.list)-1) // the array may be shared with a batch
			q.list = append(append(rest, q.list[:i]...), q.list[i+1:]...)
			return true
		}
	}
	return false
}

func (q *queue) fail(err error) {
	for _, w := range q.take(1<<30, 1<<62) {
		w.finish(Outcome{Err: err})
	}
}

// Write commits ops together. It returns when they are durable and the sink has them; before Run it waits.
// The keys of ops must differ. Errors: ExistsError, ConflictError, NotFoundError, ErrTooLarge, ErrLeadLost,
// ErrFull, ErrReadOnly, ErrGone, ErrUnavailable, ErrBusy, ErrUncertain, ErrClosed. When ctx ends before the
// commit has begun, nothing is written and its error is returned; when it ends later, the error is
// ErrUncertain with ctx's, and the write may or may not be seen. A value that cannot be encrypted fails with
// SealError.
//
// Once it has returned without an error, the memory of values that are not Immutable may be reused. After an error the store
// may still read them.
func (s *Store) Write(ctx context.Context, ops ...Op) (Outcome, error) {
	w := &write{txn: Txn{Ops: ops, Lead: Leading(ctx)}, done: make(chan struct{})}
	if err := s.admit(w); err != nil {
		return Outcome{}, err
	}
	if err := s.seal(ctx, w); err != nil {
		return Outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if err := s.stage(ctx, w); err != nil {
		return Outcome{}, err
	}
	s.queue.add(w)
	if s.ended.Load() && s.queue.drop(w) {
		w.release(false)
		return Outcome{}, ErrClosed
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if s.queue.drop(w) {
			w.release(false)
			return Outcome{}, ctx.Err()
		}
		select {
		case <-w.done:
		default:
			return Outcome{}, fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
		}
	}
	return w.out, w.out.Err
}

// admit refuses writes that no driver could commit.
func (s *Store) admit(w *write) error {
	ops := w.txn.Ops
	if len(ops) == 0 {
		return errors.New("sqlstore: a write without operations")
	}
	var seen map[Key]struct{}
	if len(ops) > 1 {
		seen = make(map[Key]struct{}, len(ops))
	}
	for _, op := range ops {
		if op.Verb < Create || op.Verb > Delete {
			return fmt.Errorf("sqlstore: %s: unknown verb %d", op.Key, op.Verb)
		}
		if op.Key.Resource == "" || op.Key.Name == "" {
			return fmt.Errorf("sqlstore: incomplete key %q", op.Key)
		}
		if len(op.Value) > s.cfg.MaxValue {
			return fmt.Errorf("%s: %d bytes, of %d allowed: %w", op.Key, len(op.Value), s.cfg.MaxValue, ErrTooLarge)
		}
		w.size += len(op.Value)
		if _, twice := seen[op.Key]; twice {
			return fmt.Errorf("sqlstore: %s occurs twice in one write", op.Key)
		}
		if seen != nil {
			seen[op.Key] = struct{}{}
		}
	}
	return nil
}

// stage has the driver write large values ahead of the commit. Staged values do not count toward the size of a batch. Errors: those of ctx.
func (s *Store) stage(ctx context.Context, w *write) error {
	if w.size < LargeValue {
		return nil
	}
	ops := slices.Clone(w.txn.Ops) // the caller may write its own again
	if err := s.driver.Stage(ctx, ops); err != nil {
		return err
	}
	w.txn.Ops, w.unstage = ops, func(committed bool) { s.driver.Unstage(ops, committed) }
	for i := range ops {
		if ops[i].Staged != 0 {
			w.size -= len(ops[i].Value)
		}
	}
	return nil
}

// commit turns waiting writes into batches. While one batch is being committed, the next gathers; no write waits
// for a timer.
func (s *Store) commit(ctx context.Context) {
	for ctx.Err() == nil {
		// Goroutines that are about to write, and wait only for a processor, join the batch: a commit costs
		// far more than a row. If there are none, this returns immediately.
		runtime.Gosched()
		batch := s.queue.take(s.cfg.MaxBatch, s.cfg.MaxBatchSize)
		if len(batch) == 0 {
			select {
			case <-s.queue.wake:
			case <-ctx.Done():
			}
			continue
		}
		s.commitBatch(ctx, batch)
	}
}

func (s *Store) commitBatch(ctx context.Context, batch []*write) {
	s.underway.Store(&batch)
	defer s.underway.Store(nil)
	returned := s.driver.RewindCount()
	out, err := s.apply(ctx, batch)
	if err != nil && len(batch) > 1 && !isCommon(err, batch) {
		// The database refuses something in it: only that write shall fail, and the others shall not need a commit each.
		half := len(batch) / 2
		s.commitBatch(ctx, batch[:half])
		s.commitBatch(ctx, batch[half:])
		return
	}
	s.refused.record(OpWrite, err)
	if err != nil {
		for _, w := range batch {
			w.finish(Outcome{Err: err})
		}
		return
	}
	wrote := false
	for i, w := range batch {
		w.returned = returned
		if out[i].Err != nil {
			w.finish(out[i])
		} else {
			w.out = out[i] // the feed finishes it
			wrote = true
		}
	}
	if wrote {
		s.own <- batch
	}
}

// isCommon reports whether an error concerns the database and not one Txn of a batch. A database may be too full for a large value alone.
func isCommon(err error, batch []*write) bool {
	if errors.Is(err, ErrFull) {
		return !slices.ContainsFunc(batch, func(w *write) bool { return w.size >= LargeValue })
	}
	common := []error{ErrUnavailable, ErrBusy, ErrUncertain, ErrClosed, ErrReadOnly, ErrGone, context.Canceled, context.DeadlineExceeded}
	return slices.ContainsFunc(common, func(e error) bool { return errors.Is(err, e) })
}

// longestWait is the longest pause between two attempts to reach a database, so that waiting writes get an answer
// soon after it is back.
const longestWait = 250 * time.Millisecond

// apply commits one batch: it retries while the database is busy or unreachable, and resolves the outcome of a
// commit whose connection broke.
func (s *Store) apply(ctx context.Context, batch []*write) ([]Outcome, error) {
	txns, ops := make([]Txn, len(batch)), 0
	for i, w := range batch {
		txns[i] = w.txn
		ops += len(w.txn.Ops)
	}
	began := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, longestWait) {
		start := time.Now()
		out, err := s.driver.Apply(context.WithoutCancel(ctx), txns, s.cfg.Clock())
		s.cfg.Observer.Committed(len(txns), ops, time.Since(start), err)
		if errors.Is(err, ErrUncertain) {
			var committed bool
			if out, committed, err = s.resolve(ctx, err); committed {
				return out, nil
			}
			if err == nil {
				err = fmt.Errorf("%w: the commit was cut, and nothing was written", ErrUnavailable)
			}
		}
		if err == nil {
			return out, nil
		}
		// An error of unknown outcome wraps its cause, and is not retried.
		again := (errors.Is(err, ErrBusy) || errors.Is(err, ErrUnavailable)) && !errors.Is(err, ErrUncertain)
		if !again || time.Since(began)+wait > s.cfg.RetryFor || !Sleep(ctx, wait) {
			return nil, err
		}
	}
}

// resolve queries the database for the outcome of a batch until it answers. It returns no error and committed false
// if nothing was written, so that the batch may be tried again.
func (s *Store) resolve(ctx context.Context, cause error) (out []Outcome, committed bool, err error) {
	began, logged := time.Now(), false
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, longestWait) {
		out, committed, err = s.driver.Resolve(context.WithoutCancel(ctx))
		if err == nil {
			s.cfg.Log.Warn("a commit was interrupted; its outcome was found", "committed", committed, "cause", cause)
			return out, committed, nil
		}
		if errors.Is(err, ErrUncertain) { // forever
			return nil, false, fmt.Errorf("%w; looking for it: %w", cause, err)
		}
		if gone := errors.Is(err, ErrGone); gone || time.Since(began) > s.cfg.RetryFor { // a missing file seldom returns soon
			s.refused.record(OpWrite, err)
			if !logged {
				logged = true
				s.cfg.Log.Warn("a commit was interrupted, and its outcome cannot be found yet", "error", err, "cause", cause)
			}
			// The queued writes have not begun: their outcome is certain.
			s.queue.fail(fmt.Errorf("%w: the outcome of an earlier commit is not known yet: %w", ErrUnavailable, err))
		}
		longest := max(30*time.Second, 2*s.cfg.RetryFor) // longer than the restart of a database takes
		if time.Since(began)+wait > longest || !Sleep(ctx, wait) {
			return nil, false, fmt.Errorf("%w; looking for it: %w", cause, err)
		}
	}
}
