package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
)

// pendingBatch is a batch whose COMMIT failed with an unknown outcome.
type pendingBatch struct {
	marker string
	out    []sqlstore.Outcome
	first  int64        // the first revision that it wrote, if it was committed,
	key    sqlstore.Key // of which object,
	at     int64        // and when
}

// pend makes the batch of an applier the pending one.
func (d *Driver) pend(a *applier, marker string, out []sqlstore.Outcome) {
	d.pending = &pendingBatch{marker: marker, out: out, first: a.head + 1, key: a.first, at: a.at}
}

// lockWriter takes the one writing connection; unlock gives it back. Its commits are durable.
func (d *Driver) lockWriter() (w *conn, unlock func(), err error) { return d.lockWriterFor(false) }

// lockWriterFor takes the writing connection. Commits that are relaxed do not wait for the disk.
func (d *Driver) lockWriterFor(relaxed bool) (w *conn, unlock func(), err error) {
	if !d.mu.TryLock() {
		d.waiting.Add(1)
		d.mu.Lock()
		d.waiting.Add(-1)
	}
	if d.writer == nil {
		err = sqlstore.ErrClosed
	} else if err = d.setRelaxed(relaxed); err == nil {
		err = d.mend(d.writer)
	}
	if err != nil {
		d.mu.Unlock()
		return nil, nil, err
	}
	return d.writer, d.mu.Unlock, nil
}

// Apply implements sqlstore.Driver.
func (d *Driver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	// The writer of a pending batch no longer waits for its outcome: the feed shows what it wrote.
	if d.unresolved() {
		if _, _, err := d.Resolve(ctx); err != nil && !errors.Is(err, sqlstore.ErrUncertain) {
			return nil, fmt.Errorf("writing a batch: %w", err)
		}
	}
	out, err := d.apply(ctx, batch, now, d.relaxed.May(batch))
	if errors.Is(err, errReserve) {
		return d.apply(ctx, batch, now, false)
	}
	return out, err
}

func (d *Driver) apply(ctx context.Context, batch []sqlstore.Txn, now time.Time, relaxed bool) ([]sqlstore.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, unlock, err := d.lockWriterFor(relaxed)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := w.exec(qBegin); err != nil {
		return nil, fmt.Errorf("beginning a batch: %w", err)
	}
	a := applier{w: w, at: now.UnixMicro(), sums: &d.sums}
	out, err := a.run(batch)
	if err == nil && a.next > a.head {
		d.seq++
		marker := fmt.Sprintf("%s:%d", d.nonce, d.seq)
		reserved := d.reserved
		if err = record(w, a.next, marker); err == nil {
			reserved, err = d.reserve(w, a.next, relaxed)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = d.Healthy()
		}
		if err == nil {
			if err = d.commit(&a, marker, out); err == nil {
				d.committed(a.next-a.head, reserved, relaxed)
			}
			return out, err
		}
	}
	if e := w.exec(qRollback); e != nil && !isIdle(e) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return nil, fmt.Errorf("writing a batch: %w", err)
	}
	return out, nil
}

func (d *Driver) commit(a *applier, marker string, out []sqlstore.Outcome) error {
	err := d.end(a.w)
	if err == nil {
		d.written.Store(true)
		d.wroteLog()
		if err = d.Healthy(); err == nil {
			return nil
		}
		// The commit may be in a file that was deleted or replaced.
		d.pend(a, marker, out)
		return fmt.Errorf("committing a batch: %w: %w", sqlstore.ErrUncertain, err)
	}
	if e := a.w.exec(qRollback); e != nil && !isIdle(e) {
		err = errors.Join(err, e)
	} else if !hasCode(err, sqlite3.SQLITE_IOERR) || isCode(err, sqlite3.SQLITE_IOERR_WRITE) {
		// The page that commits is written last: where a write failed, the log has no whole commit.
		return fmt.Errorf("committing a batch: %w", err)
	}
	// A failed sync may leave a whole commit in the log, to be found by recovery.
	d.pend(a, marker, out)
	return fmt.Errorf("committing a batch: %w: %w", sqlstore.ErrUncertain, err)
}

// end commits a transaction of the writer. If its sync may have failed, earlier parts of the log may not be
// on the disk either: see mend.
func (d *Driver) end(w *conn) error {
	err := w.exec(qCommit)
	if hasCode(err, sqlite3.SQLITE_IOERR) && !isCode(err, sqlite3.SQLITE_IOERR_WRITE) {
		d.unsynced = err
	}
	return err
}

// unresolved reports whether the outcome of a batch is not known yet.
func (d *Driver) unresolved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending != nil
}

// Resolve implements sqlstore.Driver. It replaces a commit that is not in the table.
func (d *Driver) Resolve(ctx context.Context) ([]sqlstore.Outcome, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	w, unlock, err := d.lockWriter()
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	p := d.pending
	if p == nil {
		return nil, false, nil
	}
	if err := d.Healthy(); err != nil {
		return nil, false, fmt.Errorf("resolving a batch: %w", err)
	}
	if err := w.exec(qRollback); err != nil && !isIdle(err) {
		return nil, false, fmt.Errorf("resolving a batch: %w", err)
	}
	var marker [1]driver.Value
	if _, err := w.one(marker[:], qBatch); err != nil {
		return nil, false, fmt.Errorf("resolving a batch: %w", err)
	}
	committed := marker[0] == p.marker
	if !committed { // if another process has written since, the marker is that process's
		if committed, err = p.wrote(w); err != nil {
			if errors.Is(err, sqlstore.ErrUncertain) {
				d.pending, d.version = nil, lookAgain
			}
			return nil, false, fmt.Errorf("resolving a batch: %w", err)
		}
	}
	if committed {
		d.pending = nil
		d.version = lookAgain // if no writer waits for the outcome, the feed has to read the rows from the table
		return p.out, true, nil
	}
	if err := d.replaceCommit(w); err != nil {
		return nil, false, fmt.Errorf("resolving a batch: %w", err)
	}
	d.pending = nil
	return nil, false, nil
}

// replaceCommit commits a new marker in the place that a commit whose sync failed has in the write-ahead log. Recovery, which
// might have found that commit there, then cannot find it.
func (d *Driver) replaceCommit(w *conn) error {
	d.seq++
	return w.exec(qSetBatch, fmt.Sprintf("%s:%d", d.nonce, d.seq))
}

// wrote reports whether the batch wrote its first revision, or another process did. ErrUncertain: the row is gone.
func (p *pendingBatch) wrote(w *conn) (bool, error) {
	head, err := w.number(qRevision)
	if err != nil || head < p.first {
		return false, err
	}
	row, found, err := readRow(context.Background(), w, qRow, p.first)
	switch {
	case err != nil:
		return false, err
	case !found || row.Damaged != nil:
		return false, fmt.Errorf("%w: the row of revision %d would tell", sqlstore.ErrUncertain, p.first)
	}
	return row.Key == p.key && row.WrittenAt.UnixMicro() == p.at, nil
}

// record stores the newest revision, and the number of the batch. These are two statements because a
// statement that changes several rows first makes a temporary table, which costs as much as the rest of a
// small batch.
func record(w *conn, revision int64, marker string) error {
	if err := w.exec(qSetRevision, revision); err != nil {
		return err
	}
	return w.exec(qSetBatch, marker)
}

// applier runs one batch inside an open transaction.
type applier struct {
	w     *conn
	head  int64 // revision before the batch
	next  int64 // newest revision handed out
	at    int64
	first sqlstore.Key // the object of the first of them
	sums  *sqlstore.Checksummer
}

func (a *applier) run(batch []sqlstore.Txn) ([]sqlstore.Outcome, error) {
	head, err := a.w.number(qRevision)
	if err != nil {
		return nil, err
	}
	a.head, a.next = head, head
	out := make([]sqlstore.Outcome, len(batch))
	at := fromMicros(a.at)
	for i := range batch {
		ops := batch[i].Ops
		revisions := make([]int64, 2*len(ops))
		out[i] = sqlstore.Outcome{Revisions: revisions[:len(ops):len(ops)], Created: revisions[len(ops):], WrittenAt: at}
		failed, err := a.txn(ops, &out[i])
		if err != nil {
			return nil, err
		}
		if failed != nil {
			out[i] = sqlstore.Outcome{Err: failed}
		}
	}
	return out, nil
}

// txn writes the Ops of one Txn. failed is the error for its writer; err ends the
// batch. A single Op is its own condition: the statement that finds it broken
// changes nothing. All are checked first, and written if all may be.
func (a *applier) txn(ops []sqlstore.Op, out *sqlstore.Outcome) (failed, err error) {
	if len(ops) > 1 {
		for i := range ops {
			if failed, err = a.check(&ops[i]); failed != nil || err != nil {
				return failed, err
			}
		}
	}
	for i := range ops {
		created, failed, err := a.write(&ops[i])
		if err == nil && failed != nil && len(ops) > 1 {
			err = fmt.Errorf("after its conditions held: %w", failed)
		}
		if failed != nil || err != nil {
			return failed, err
		}
		out.Revisions[i], out.Created[i] = a.next, created
	}
	return nil, nil
}

func (a *applier) check(op *sqlstore.Op) (failed, err error) {
	row, found, err := a.current(op.Key)
	switch {
	case err != nil:
		return nil, err
	case op.Verb == sqlstore.Create && found:
		return &sqlstore.ExistsError{Key: op.Key, Current: row}, nil
	case op.Verb == sqlstore.Create:
		return nil, nil
	case !found:
		return &sqlstore.NotFoundError{Key: op.Key}, nil
	case row.Revision != op.Expect:
		return &sqlstore.ConflictError{Key: op.Key, Expect: op.Expect, Current: row}, nil
	}
	return nil, nil
}

func (a *applier) write(op *sqlstore.Op) (created int64, failed, err error) {
	revision := a.next + 1
	created = revision
	var at any = revision // as an argument, which is memory of its own
	since := at
	var superseded, expires any
	var deleted int64
	if !op.ExpiresAt.IsZero() {
		expires = op.ExpiresAt.UnixMicro()
	}
	if op.Verb != sqlstore.Create {
		var v [1]driver.Value
		found, err := a.w.one(v[:], qExpected, op.Expect, op.Key.Resource, op.Key.Namespace, op.Key.Name)
		if err != nil {
			return 0, nil, err
		}
		if !found {
			return a.refused(op)
		}
		var ok bool
		if created, ok = v[0].(int64); ok {
			since = v[0]
		} else {
			since = created
		}
		if err := a.w.exec(qSupersede, at, op.Expect); err != nil {
			return 0, nil, err
		}
	}
	if op.Verb == sqlstore.Delete {
		superseded, deleted, expires = at, 1, nil
	}
	value := op.Value
	if value == nil {
		value = []byte{}
	}
	var until *int64
	if expires != nil {
		until = sqlstore.Micros(op.ExpiresAt)
	}
	k := &op.Key
	sum := int64(sqlstore.DamagedChecksum)
	if !op.Damaged {
		sum = sqlstore.CompleteChecksum(a.sums.Partial(k.Resource, k.Namespace, k.Name, deleted != 0, value, until, a.at), revision, created)
	}
	var stored any = value
	if isLarge(value) {
		if op.Verb == sqlstore.Create { // the others' conditions hold already
			if failed, err := a.check(op); failed != nil || err != nil {
				return 0, failed, err
			}
		}
		if stored, err = holdLarge(a.w, op.Staged, revision, a.at, value); err != nil {
			return 0, nil, err
		}
	}
	err = a.w.exec(qInsert, at, k.Resource, k.Namespace, k.Name, since, superseded, deleted, stored, expires, a.at, sum)
	if op.Verb == sqlstore.Create && isCode(err, sqlite3.SQLITE_CONSTRAINT_UNIQUE) { // of live keys
		return a.refused(op)
	}
	if err != nil {
		return 0, nil, err
	}
	if a.next == a.head {
		a.first = op.Key
	}
	a.next = revision
	return created, nil, nil
}

// refused finds out why a condition did not hold.
func (a *applier) refused(op *sqlstore.Op) (int64, error, error) {
	failed, err := a.check(op)
	if err == nil && failed == nil {
		err = fmt.Errorf("%s: a write was refused and its condition holds", op.Key)
	}
	return 0, failed, err
}

func (a *applier) current(key sqlstore.Key) (row sqlstore.Row, found bool, err error) {
	dec := decoder{c: a.w}
	err = a.w.query(context.Background(), func(v []driver.Value) error {
		row, err = dec.row(v)
		found = true
		return err
	}, qLive, key.Resource, key.Namespace, key.Name)
	return row, found, err
}
