package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// pendingBatch is a batch whose outcome could not be read.
type pendingBatch struct {
	marker string
	batch  []sqlstore.Txn
	waves  []*wavePlan
	now    time.Time
}

// wavePlan is the part of a batch whose keys all differ, as arrays of one statement.
type wavePlan struct {
	ord, txn, verb            []int32
	resource, namespace, name []string
	expect                    []int64
	value                     [][]byte
	expires                   []*time.Time
	ops                       []opRef
	keys                      map[sqlstore.Key]int // position in ops
	ends                      bool                 // some operation ends a row
}

type opRef struct{ txn, op int }

// plan cuts a batch into waves: a Txn that names a key of the wave before it opens
// a new one, as it must see what that wave did.
func plan(batch []sqlstore.Txn) []*wavePlan {
	var waves []*wavePlan
	var w *wavePlan
	for t := range batch {
		for o := range batch[t].Ops {
			if w != nil {
				if _, again := w.keys[batch[t].Ops[o].Key]; !again {
					continue
				}
			}
			w = &wavePlan{keys: make(map[sqlstore.Key]int)}
			waves = append(waves, w)
			break
		}
		for o := range batch[t].Ops {
			w.add(t, o, &batch[t].Ops[o])
		}
	}
	return waves
}

func (w *wavePlan) add(t, o int, op *sqlstore.Op) {
	w.keys[op.Key] = len(w.ops)
	w.ops = append(w.ops, opRef{t, o})
	w.ord = append(w.ord, int32(len(w.ops)))
	w.txn = append(w.txn, int32(t))
	w.verb = append(w.verb, int32(op.Verb))
	w.resource = append(w.resource, op.Key.Resource)
	w.namespace = append(w.namespace, op.Key.Namespace)
	w.name = append(w.name, op.Key.Name)
	w.expect = append(w.expect, op.Expect)
	value := op.Value
	if value == nil {
		value = []byte{}
	}
	w.value = append(w.value, value)
	var expires *time.Time
	if !op.ExpiresAt.IsZero() {
		expires = &op.ExpiresAt
	}
	w.expires = append(w.expires, expires)
	w.ends = w.ends || op.Verb != sqlstore.Create
}

func (w *wavePlan) args(more ...any) []any {
	return append([]any{w.ord, w.txn, w.verb, w.resource, w.namespace, w.name, w.expect}, more...)
}

// marker is the kv_meta key of this process's last batch.
func (d *Driver) marker() string { return "batch:" + d.nonce }

// Apply implements sqlstore.Driver: one pipelined round trip, whatever the batch.
func (d *Driver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed() {
		return nil, sqlstore.ErrClosed
	}
	if d.pending != nil {
		return nil, fmt.Errorf("an earlier batch is not resolved: %w", sqlstore.ErrUncertain)
	}
	now = now.UTC().Truncate(time.Microsecond)
	out := make([]sqlstore.Outcome, len(batch))
	waves := plan(batch)
	if d.seq == 0 {
		// The marker's row is made ahead, so that each batch only updates it.
		if _, err := d.pool.Exec(ctx, qNewMarker, d.marker(), "1"); err != nil {
			return nil, fmt.Errorf("writing a batch: %w", translate(err))
		}
		d.seq = 1
	}
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("writing a batch: %w", translate(err))
	}
	defer conn.Release()
	before, word := strconv.FormatInt(d.seq, 10), strconv.FormatInt(d.seq+1, 10)
	if err := d.send(ctx, conn.Conn(), batch, waves, now, before, word, out); err != nil {
		if fenced(err) {
			d.seq = 0 // somebody cleaned the marker away: a new one is made
			return nil, fmt.Errorf("writing a batch: the marker is gone: %w", sqlstore.ErrBusy)
		}
		if refused(err) || errors.Is(err, errNotSent) {
			return nil, fmt.Errorf("writing a batch: %w", translate(err))
		}
		conn.Conn().Close(context.WithoutCancel(ctx))
		d.pending = &pendingBatch{marker: word, batch: batch, waves: waves, now: now}
		return nil, fmt.Errorf("committing a batch: %w: %w", sqlstore.ErrUncertain, err)
	}
	d.seq++
	d.wake()
	return out, nil
}

var errNotSent = errors.New("not sent")

// send runs the transaction. Its statements are queued together and sent at once;
// after the first that fails the server does none of the others.
func (d *Driver) send(ctx context.Context, c *pgx.Conn, batch []sqlstore.Txn, waves []*wavePlan, now time.Time, before, word string, out []sqlstore.Outcome) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	b.Queue(qLock)
	prepareOutcomes(batch, out, now)
	b.Queue(qFence, d.marker(), before)
	b.Queue(qSetMarker, d.marker(), word)
	for _, w := range waves {
		b.Queue(qRefused, w.args()...).Query(func(rows pgx.Rows) error { return w.refuse(rows, batch, out) })
		if w.ends {
			b.Queue(qEnd, w.args()...)
		}
		b.Queue(qInsert, w.args(w.value, w.expires, now)...).Query(func(rows pgx.Rows) error { return w.read(rows, out) })
		b.Queue(qCount)
		b.Queue(qAddMarker, d.marker())
	}
	b.Queue(qCommit)
	err := c.SendBatch(ctx, b).Close()
	if err != nil && refused(err) && c.PgConn().TxStatus() != 'I' && !c.IsClosed() {
		if _, e := c.Exec(ctx, "ROLLBACK"); e != nil {
			c.Close(context.WithoutCancel(ctx))
		}
	}
	return err
}

func prepareOutcomes(batch []sqlstore.Txn, out []sqlstore.Outcome, now time.Time) {
	for i := range batch {
		ops := len(batch[i].Ops)
		revisions := make([]int64, 2*ops)
		out[i] = sqlstore.Outcome{Revisions: revisions[:ops:ops], Created: revisions[ops:], WrittenAt: now}
	}
}

// read takes the rows that a wave wrote.
func (w *wavePlan) read(rows pgx.Rows, out []sqlstore.Outcome) error {
	defer rows.Close()
	var revision, created int64
	var key sqlstore.Key
	for rows.Next() {
		if err := rows.Scan(&revision, &created, &key.Resource, &key.Namespace, &key.Name); err != nil {
			return err
		}
		at, ok := w.keys[key]
		if !ok {
			return fmt.Errorf("the database answers for %s, which was not written", key)
		}
		ref := w.ops[at]
		out[ref.txn].Revisions[ref.op], out[ref.txn].Created[ref.op] = revision, created
	}
	return rows.Err()
}

// refuse takes the operations of a wave that may not go ahead. A Txn fails with
// the first of its own.
func (w *wavePlan) refuse(rows pgx.Rows, batch []sqlstore.Txn, out []sqlstore.Outcome) error {
	defer rows.Close()
	var s scanner
	for rows.Next() {
		var ord int32
		var found bool
		row, err := s.rowBehind(rows, &ord, &found)
		if err != nil {
			return err
		}
		ref := w.ops[ord-1]
		if out[ref.txn].Err == nil {
			out[ref.txn] = sqlstore.Outcome{Err: refusal(&batch[ref.txn].Ops[ref.op], row, found)}
		}
	}
	return rows.Err()
}

func refusal(op *sqlstore.Op, row sqlstore.Row, found bool) error {
	switch {
	case op.Verb == sqlstore.Create:
		return &sqlstore.ExistsError{Key: op.Key, Current: row}
	case !found:
		return &sqlstore.NotFoundError{Key: op.Key}
	}
	return &sqlstore.ConflictError{Key: op.Key, Expect: op.Expect, Current: row}
}
