package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/rowlock/rowlock/sqlstore"
)

// stagedBytes bounds the bytes of staged values, and of abandoned ones that are not deleted yet. Ops with larger values are staged alone.
const stagedBytes = 128 << 20

// staging connects the writers of large values with the sweeper.
type staging struct {
	most int64
	room *semaphore.Weighted
	wake chan struct{} // receives a value when the sweeper has work

	sweeping *semaphore.Weighted // held by sweep

	mu        sync.Mutex
	abandoned []abandoned
	closed    bool // the sweeper has ended
}

// abandoned has the ids of staged values that no row will have.
type abandoned struct {
	ids  []int64
	room int64 // to release once they are deleted
}

func newStaging() *staging {
	return &staging{most: stagedBytes, room: semaphore.NewWeighted(stagedBytes), wake: make(chan struct{}, 1), sweeping: semaphore.NewWeighted(1)}
}

// abandon passes values to the sweeper, which deletes them. Once it has ended, the next process does.
func (s *staging) abandon(a abandoned) {
	if len(a.ids) > 0 && s.pass(a) {
		s.wakeUp()
		return
	}
	s.room.Release(a.room)
}

// pass returns false if the sweeper has ended.
func (s *staging) pass(a abandoned) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.abandoned = append(s.abandoned, a)
	}
	return !s.closed
}

// close releases the room of abandoned values as the sweeper ends: Stage must not wait for it.
func (s *staging) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, a := range s.takeAbandoned() {
		s.room.Release(a.room)
	}
}

func (s *staging) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *staging) takeAbandoned() []abandoned {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.abandoned
	s.abandoned = nil
	return all
}

// roomFor returns the room that the large values of ops take.
func (s *staging) roomFor(ops []sqlstore.Op) (bytes int64) {
	for i := range ops {
		if isLarge(ops[i].Value) {
			bytes += int64(len(ops[i].Value))
		}
	}
	return min(bytes, s.most)
}

// Stage implements sqlstore.Writer.
func (d *Driver) Stage(ctx context.Context, ops []sqlstore.Op) error {
	return d.stageAll(ctx, ops, holds)
}

// stageAll stages the large values of ops, each as long as it is wanted. It does not return an error of the database: if it lasts,
// the transaction of the rows meets it too.
func (d *Driver) stageAll(ctx context.Context, ops []sqlstore.Op, wanted func(*conn, *sqlstore.Op) (bool, error)) error {
	room := d.staging.roomFor(ops)
	if room == 0 {
		return nil
	}
	if err := d.staging.room.Acquire(ctx, room); err != nil {
		return err
	}
	var unused []int64
	for i := range ops {
		op := &ops[i]
		op.Staged = 0
		if ctx.Err() != nil || !isLarge(op.Value) {
			continue
		}
		id, err := d.stage(ctx, op.Value, func(w *conn) (bool, error) { return wanted(w, op) })
		if err == nil {
			op.Staged = id
		} else if id != 0 {
			unused = append(unused, id)
		}
	}
	err := ctx.Err()
	if err == nil {
		room = 0 // Unstage releases it
	} else {
		unused = append(unused, stagedIDs(ops)...)
	}
	d.staging.abandon(abandoned{unused, room})
	return err
}

func stagedIDs(ops []sqlstore.Op) (ids []int64) {
	for i := range ops {
		if ops[i].Staged != 0 {
			ids = append(ids, ops[i].Staged)
		}
	}
	return ids
}

// Unstage implements sqlstore.Writer.
func (d *Driver) Unstage(ops []sqlstore.Op, committed bool) {
	a := abandoned{room: d.staging.roomFor(ops)}
	if !committed {
		a.ids = stagedIDs(ops)
	}
	d.staging.abandon(a)
}

// holds reports whether the condition of an op holds now.
func holds(w *conn, op *sqlstore.Op) (bool, error) {
	var v [1]driver.Value
	found, err := w.one(v[:], qLiveRevision, op.Key.Resource, op.Key.Namespace, op.Key.Name)
	if op.Verb == sqlstore.Create {
		return !found, err
	}
	return found && v[0] == op.Expect, err
}

// errUnwanted: a value that is being staged would not be committed, was abandoned, or may not fit.
var errUnwanted = errors.New("the value need not be staged")

// hasRoom reports whether the rest of a value fits and leaves room for LargeValue bytes. Pieces of a value that does not fit would take
// the room of other writes until they are deleted, which takes room, too. If the commit of the row writes it, nothing of it stays.
func (d *Driver) hasRoom(w *conn, rest int) (bool, error) {
	needed := int64(rest + sqlstore.LargeValue)
	if freeBytes(d.path) < 2*needed { // in the log, and in the file
		return false, nil
	}
	if d.cfg.MaxBytes <= 0 {
		return true, nil
	}
	pages, err := w.number("PRAGMA page_count")
	if err != nil {
		return false, err
	}
	free, err := w.number("PRAGMA freelist_count")
	return d.cfg.MaxBytes-(pages-free)*pageSize >= needed, err
}

// stage writes a value that no row has yet, a piece in each transaction, as long as wanted returns true. With an error it returns
// the id of what it has written, or 0. Staging, trimming and copying of the log take the same mutex in turn, so at most one of them
// delays a batch; if there are batches, or other processes, which have to find the file unlocked, they have as much time after each
// piece. No piece needs to be on the disk before the row, whose commit syncs all of the log. So each is synced after its
// transaction, when no batch waits for it, and little is left for that commit.
func (d *Driver) stage(ctx context.Context, value []byte, wanted func(w *conn) (bool, error)) (id int64, err error) {
	var batches uint64
	for n := int64(0); len(value) > 0; n++ {
		piece := value[:min(len(value), pieceBytes)]
		begun, shared := id, false
		held, err := d.writingFor(ctx, true, func(w *conn) (err error) {
			ok, err := wanted(w)
			if err == nil && ok {
				ok, err = d.hasRoom(w, len(value))
			}
			if err == nil && ok && id == 0 {
				begun, err = beginLarge(w, nil, time.Now().UnixMicro())
			} else if err == nil && ok {
				var still int64
				still, err = w.number(qLargeUnheld, id)
				ok = still != 0
			}
			if err == nil && !ok {
				err = errUnwanted
			}
			if err != nil {
				return err
			}
			shared, batches = n > 0 && d.seq != batches || d.waiting.Load() > 0 || d.lock.exclusive() == 0, d.seq
			return w.exec(qAddPiece, begun, n, piece)
		})
		if err != nil {
			return id, err
		}
		id, value = begun, value[len(piece):]
		unlocked := time.Now()
		if err := d.syncPieces(); err != nil {
			return id, err
		}
		if shared && len(value) > 0 && !sqlstore.Sleep(ctx, held-time.Since(unlocked)) {
			return id, ctx.Err()
		}
	}
	return id, nil
}
