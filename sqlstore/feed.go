package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// feed delivers the log to the sink: own commits from memory if they are next, everything else from the table. It
// is the only caller of the sink.
type feed struct {
	*Store
	sink    Sink
	hints   <-chan struct{}
	changes []Change    // reused
	again   *time.Timer // to look for revisions that were left to a batch in progress
	left    struct {    // when that began, and the newest revision of the sink then
		at    int64
		since time.Time
	}
}

const pageOfChanges = 1000

// run feeds until feeding ends, which is after the committer has ended. Reads of the table stop with ctx, so that
// an unreachable database does not delay the end. If the feed cannot continue it stops the store.
func (f *feed) run(feeding, ctx context.Context, stop func()) error {
	f.again = time.NewTimer(0) // the first look
	defer f.again.Stop()
	var err error
	for err == nil {
		select { // writers wait for the first two, and for no query
		case batch := <-f.own:
			err = f.take(ctx, batch)
			continue
		default:
		}
		select {
		case batch := <-f.own:
			err = f.take(ctx, batch)
		case _, open := <-f.hints:
			if !open {
				f.hints = nil
			}
			err = f.poll(ctx)
		case <-f.driver.RewindNotices():
			err = f.poll(ctx)
		case <-f.polls:
			err = f.poll(ctx)
		case <-f.again.C:
			err = f.poll(ctx)
		case <-feeding.Done():
			f.drain(func(batch []*write) { f.take(ctx, batch) })
			return nil
		}
	}
	var compacted *CompactedError
	if !errors.As(err, &compacted) { // ctx has ended
		err = nil
	}
	stop()
	// Later commits are durable but can no longer reach the sink.
	for {
		select {
		case batch := <-f.own:
			settle(batch, ErrUncertain)
		case <-feeding.Done():
			f.drain(func(batch []*write) { settle(batch, ErrUncertain) })
			return err
		}
	}
}

func (f *feed) drain(each func([]*write)) {
	for {
		select {
		case batch := <-f.own:
			each(batch)
		default:
			return
		}
	}
}

// settle finishes the writes of a batch that are not finished.
func settle(batch []*write, err error) {
	for _, w := range batch {
		if w.out.Err == nil {
			out := w.out
			if err != nil {
				out = Outcome{Err: err}
			}
			w.finish(out)
		}
	}
}

// stall bounds how long the feed waits for a batch in progress to deliver earlier revisions: short for people,
// long for a commit.
const stall = 20 * time.Millisecond

// poll reads the bounds and brings the sink to the head. Revisions that may belong to a batch of this process come
// from memory: then look returns and is called again. If the sink has made no progress for a stall, it reads the
// table, also if hints and slow answers have delayed the next call.
func (f *feed) poll(ctx context.Context) error {
	began := time.Now()
	f.lastPoll.Store(&began)
	// What asked for a look before now gets this one.
	f.again.Stop()
	select {
	case <-f.polls:
	default:
	}
	b, err := f.driver.Bounds(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.cfg.Log.Debug("the feed cannot read the store", "error", err) // the refusals were logged
			f.again.Reset(time.Second)
		}
		return nil
	}
	f.saw(b)
	applied := f.applied.Load()
	if f.Rewound() {
		return f.reload(ctx, &CompactedError{Revision: applied, Floor: b.Floor})
	}
	if b.Head <= applied {
		return nil
	}
	if f.left.at != applied {
		f.left.at, f.left.since = applied, time.Now()
	}
	late := time.Since(f.left.since) >= stall
	// In this order, because a batch moves from underway to own.
	batch := f.underway.Load()
	if len(f.own) > 0 || batch != nil && !late {
		f.again.Reset(stall)
		return nil
	}
	if batch != nil {
		return f.catchUp(ctx, b.Head, *batch...)
	}
	return f.catchUp(ctx, b.Head)
}

// catchUp reads the table until the sink has revision to. The changes may include writes of a batch in progress
// whose outcome is not known yet.
func (f *feed) catchUp(ctx context.Context, to int64, underway ...*write) error {
	wait := 10 * time.Millisecond
	for f.applied.Load() < to {
		after := f.applied.Load()
		changes, err := f.driver.Changes(ctx, after, int(min(pageOfChanges, to-after)), false)
		var compacted *CompactedError
		switch {
		case errors.As(err, &compacted):
			if err := f.reload(ctx, compacted); err != nil {
				return err
			}
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.cfg.Log.Debug("the feed cannot read the store", "after", after, "error", err)
			fallthrough
		case len(changes) == 0:
			if !Sleep(ctx, wait) {
				return ctx.Err()
			}
			wait = min(2*wait, time.Second)
			// The cause may be permanent: then Bounds notices it, and logs its own error.
			if b, err := f.driver.Bounds(ctx); err == nil && f.Rewound() {
				if err := f.reload(ctx, &CompactedError{Revision: after, Floor: b.Floor}); err != nil {
					return err
				}
			}
		default:
			var own []bool
			if len(underway) > 0 {
				own = attach(changes, underway)
			}
			f.openFed(ctx, changes, own)
			f.deliver(changes)
			wait = 10 * time.Millisecond
		}
	}
	return nil
}

// reload loads the live rows into the sink if the log no longer has the changes.
func (f *feed) reload(ctx context.Context, cause *CompactedError) error {
	sink, ok := f.sink.(Reloader)
	if !ok {
		return cause
	}
	what := "the feed fell behind the history that is kept; all objects are loaded anew"
	if f.Rewound() {
		what = "the database has gone back: nothing is answered from memory until all objects are loaded anew"
	}
	f.cfg.Log.Warn(what, "applied", f.applied.Load(), "floor", cause.Floor)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		began := time.Now()
		returned := f.driver.RewindCount() // as of before the load
		afresh := returned != f.loaded.Load()
		revision, err := sink.Reload(ctx, f.Store, afresh)
		if err == nil && f.driver.RewindCount() != returned {
			continue // it went back in the meantime
		}
		if err == nil {
			if afresh { // the known floors are those of the former state
				f.floors.Store(nil)
				if _, err := f.updateFloors(ctx, f.driver.Floors); err != nil && ctx.Err() == nil {
					f.cfg.Log.Debug("cannot read how far history reaches back", "error", err)
				}
			}
			f.loaded.Store(returned)
			f.applied.Store(revision)
			raise(&f.head, revision)
			f.cfg.Observer.Reloaded(revision, time.Since(began))
			f.cfg.Log.Warn("all objects were loaded anew; watches begin again", "revision", revision)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.cfg.Log.Warn("cannot reload all objects yet", "error", err)
		if !Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// take delivers an own batch to the sink and acknowledges its writes.
func (f *feed) take(ctx context.Context, batch []*write) error {
	f.changes = f.changes[:0]
	for _, w := range batch {
		if w.out.Err == nil {
			f.changes = appendChanges(f.changes, w)
		}
	}
	if err := f.catchUp(ctx, f.changes[0].Revision-1); err != nil {
		settle(batch, ErrUncertain)
		return err
	}
	if f.lost(batch[0].returned, f.changes[len(f.changes)-1].Revision) {
		clear(f.changes)
		settle(batch, fmt.Errorf("%w: %w", ErrUncertain, ErrRewound))
		return nil
	}
	f.acknowledge(batch)
	clear(f.changes)
	return nil
}

// lost reports whether the database went back after it committed a revision and no longer has it, or may not: how far it went
// back is known for the last time only, and it had gone back returned times before the commit. Such a write is neither shown nor
// acknowledged.
func (f *feed) lost(returned, revision int64) bool {
	if f.driver.RewindCount() == 0 {
		return false
	}
	r := f.driver.Rewinds()
	return revision <= r.Last.ContinuesAt && (revision > r.Last.Found || r.Count > returned+1)
}

func (f *feed) deliver(changes []Change) {
	last := &changes[len(changes)-1]
	raise(&f.head, last.Revision) // first: a client that reads after it has seen the change gets this state or a later one
	f.sink.Apply(changes)
	f.applied.Store(last.Revision)
	f.cfg.Observer.Applied(last.Revision, f.head.Load(), f.cfg.Clock().Sub(last.WrittenAt))
}

// appendChanges makes the log entries of a committed write.
func appendChanges(changes []Change, w *write) []Change {
	for i := range w.txn.Ops {
		op := &w.txn.Ops[i]
		c := Change{Aux: op.Aux}
		c.Row = Row{Key: op.Key, Revision: w.out.Revisions[i], Created: w.out.Created[i], Value: op.Value, ExpiresAt: op.ExpiresAt, WrittenAt: w.out.WrittenAt}
		w.show(i, &c.Row)
		if op.Verb != Create {
			c.PrevRevision = op.Expect
		}
		if op.Verb == Delete {
			c.Deleted, c.Superseded, c.ExpiresAt = true, c.Revision, time.Time{}
		}
		changes = append(changes, c)
	}
	return changes
}

// attach adds the attachments and the values of their writes to changes from the table. Because of compare-and-swap
// only one write can succeed on an expected revision. own has true for each change whose write it found.
func attach(changes []Change, writes []*write) (own []bool) {
	type place struct {
		w *write
		i int
	}
	own = make([]bool, len(changes))
	ops := make(map[Key][]place)
	for _, w := range writes {
		if w.finished() {
			continue // its values may have been reused
		}
		for i := range w.txn.Ops {
			ops[w.txn.Ops[i].Key] = append(ops[w.txn.Ops[i].Key], place{w, i})
		}
	}
	for n := range changes {
		c := &changes[n]
		for _, at := range ops[c.Key] {
			op := &at.w.txn.Ops[at.i]
			expect := op.Expect
			if op.Verb == Create {
				expect = 0
			}
			if expect == c.PrevRevision && (op.Verb == Delete) == c.Deleted && bytes.Equal(op.Value, c.Value) {
				c.Aux, own[n] = op.Aux, true
				at.w.show(at.i, &c.Row)
				break
			}
		}
	}
	return own
}
