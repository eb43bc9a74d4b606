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
	marker  string
	batch   []sqlstore.Txn
	waves   []*wavePlan
	now     time.Time
	relaxed bool        // it need not wait for the disk
	leads   [2][]string // names and holders of the leads on whose behalf it writes
	pid     uint32      // of the session that it was sent to
	head    int64       // a revision that existed before it was sent
}

// wavePlan is the part of a batch whose keys all differ, as arrays of one statement.
type wavePlan struct {
	ord, txn, verb            []int32
	resource, namespace, name []string
	expect                    []int64
	expires                   []*time.Time
	values                    []byte  // of all operations
	at, size                  []int32 // where in values, from 1 on, that of an operation is
	ops                       []opRef
	keys                      map[sqlstore.Key]int // position in ops
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
			w = &wavePlan{keys: make(map[sqlstore.Key]int), values: []byte{}}
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
	w.at, w.size = append(w.at, int32(len(w.values)+1)), append(w.size, int32(len(op.Value)))
	w.values = append(w.values, op.Value...)
	var expires *time.Time
	if !op.ExpiresAt.IsZero() {
		expires = &op.ExpiresAt
	}
	w.expires = append(w.expires, expires)
}

// marker returns the kv_meta key of this process's last batch.
func (d *Driver) marker() string { return "batch:" + d.nonce }

// Apply implements sqlstore.Driver: one pipelined round trip, whatever the batch.
func (d *Driver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed() {
		return nil, sqlstore.ErrClosed
	}
	ctx, cancel := d.limit(ctx, d.answerTime())
	defer cancel()
	for {
		out, err := d.apply(ctx, batch, now)
		if !errors.Is(err, errLeadLost) { // each time this process has one lead less
			return out, err
		}
	}
}

// apply is Apply for a holder of mu.
func (d *Driver) apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	if d.pending != nil {
		// The writer of that batch no longer waits: the feed delivers the outcome.
		if _, _, err := d.resolve(ctx); err != nil && !errors.Is(err, sqlstore.ErrUncertain) {
			return nil, fmt.Errorf("writing a batch: %w", unsent(err))
		}
	}
	if err := d.mark(ctx); err != nil {
		return nil, fmt.Errorf("writing a batch: %w", d.translate(ctx, err))
	}
	batch, names, holders := d.leads.led(batch)
	out := make([]sqlstore.Outcome, len(batch))
	if refuse(batch, out) {
		return out, nil
	}
	relaxed := d.relax(ctx, batch)
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("writing a batch: %w", d.translate(ctx, err))
	}
	defer conn.Release()
	if d.lineage.suspect.Load() { // maybe since this very connection was made
		d.marked = false
		return nil, fmt.Errorf("writing a batch: the database is another one than before: %w", sqlstore.ErrBusy)
	}
	now = now.UTC().Truncate(time.Microsecond)
	p := &pendingBatch{marker: strconv.FormatInt(d.seq+1, 10), batch: batch, waves: plan(batch), now: now, relaxed: relaxed, leads: [2][]string{names, holders}, pid: conn.Conn().PgConn().PID(), head: d.head.Load()}
	if err := d.send(ctx, conn.Conn(), p, out); err != nil {
		if fenced(err) {
			if len(names) > 0 {
				if lost, err := d.loseOthers(ctx, names, holders); lost && err == nil {
					return nil, errLeadLost
				}
			}
			d.marked = false // the marker was removed by hand, or the database crashed or went back: a new one is made
			return nil, fmt.Errorf("writing a batch: its marker or kv_alive is gone, or the newest revision is lower than it was: %w", sqlstore.ErrBusy)
		}
		if refused(err) || errors.Is(err, errNotSent) {
			return nil, fmt.Errorf("writing a batch: %w", d.translate(ctx, err))
		}
		conn.Conn().Close(over)
		d.closeConnections(err)
		d.pending = p
		return nil, fmt.Errorf("committing a batch: %w: %w", sqlstore.ErrUncertain, err)
	}
	d.seq++
	d.saw(newest(out))
	refuse(batch, out)
	if relaxed {
		d.relaxed.Committed(p.ops())
	} else {
		d.relaxed.Durable()
	}
	d.wake()
	return out, nil
}

// ops returns an upper bound of the revisions that a batch takes.
func (p *pendingBatch) ops() (n int) {
	for i := range p.batch {
		n += len(p.batch[i].Ops)
	}
	return n
}

// newest returns the last revision that a batch wrote, 0 if nothing.
func newest(out []sqlstore.Outcome) int64 {
	for i := len(out) - 1; i >= 0; i-- {
		if n := len(out[i].Revisions); n > 0 {
			return out[i].Revisions[n-1]
		}
	}
	return 0
}

// unsent marks an error from before a batch: the batch was not done.
func unsent(err error) error {
	if errors.Is(err, sqlstore.ErrBusy) || errors.Is(err, sqlstore.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, err)
}

// mark makes the marker's row, so that each batch only updates it.
func (d *Driver) mark(ctx context.Context) error {
	if d.marked {
		return nil
	}
	if err := d.examine(ctx); err != nil {
		return err
	}
	if _, err := d.pool.Exec(ctx, qNewMarker, d.marker(), strconv.FormatInt(d.seq+1, 10)); err != nil {
		return err
	}
	d.seq++
	d.marked = true
	return nil
}

var errNotSent = errors.New("not sent")

// over is a context that has ended: to close a connection without a farewell, which
// a dead one would have to wait for.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// send runs the transaction. Its statements are queued together and sent at once;
// after the first that fails the server does none of the others.
func (d *Driver) send(ctx context.Context, c *pgx.Conn, p *pendingBatch, out []sqlstore.Outcome) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	b := &pgx.Batch{}
	b.Queue(qBegin)
	d.queueSettings(b)
	b.Queue(qLockAlive, d.head.Load(), d.lineage.number.Load())
	if len(p.leads[0]) > 0 {
		b.Queue(qLeadsStand, p.leads[0], p.leads[1])
	}
	if p.relaxed {
		b.Queue(qRelax, int64(p.ops()))
	}
	prepareOutcomes(p.batch, out, p.now)
	fence, marker := strconv.FormatInt(d.seq, 10), &p.marker
	for _, w := range p.waves {
		b.Queue(qWave, w.ord, w.txn, w.verb, w.resource, w.namespace, w.name, w.expect, w.values, p.now, d.marker(), fence, marker, w.expires, w.at, w.size).
			Query(func(rows pgx.Rows) error { return w.answer(rows, p.batch, out) })
		fence, marker = p.marker, nil
	}
	b.Queue(qCommit)
	known := uncancelled(c)
	err := c.SendBatch(ctx, b).Close()
	if err == nil || refused(err) {
		known()
	}
	if err == nil {
		err = confirmed(c)
	}
	if err != nil && refused(err) && c.PgConn().TxStatus() != 'I' && !c.IsClosed() {
		if _, e := c.Exec(ctx, "ROLLBACK"); e != nil {
			c.Close(over)
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

// answer reads the result of qWave: operations that were done, and refused ones with the rows that
// they conflict with. A Txn fails with the first of its own.
func (w *wavePlan) answer(rows pgx.Rows, batch []sqlstore.Txn, out []sqlstore.Outcome) error {
	defer rows.Close()
	var s scanner
	failed := make(map[int]int) // the first operation in the way, by Txn
	for rows.Next() {
		var ord int32
		var found bool
		row, err := s.scan(rows, []any{&ord, &found}, nil)
		if err != nil {
			return err
		}
		switch {
		case ord > 0:
			ref := w.ops[ord-1]
			out[ref.txn].Revisions[ref.op], out[ref.txn].Created[ref.op] = row.Revision, row.Created
		case ord < 0:
			ref := w.ops[-ord-1]
			if first, ok := failed[ref.txn]; !ok || ref.op < first {
				failed[ref.txn] = ref.op
				out[ref.txn] = sqlstore.Outcome{Err: refusal(&batch[ref.txn].Ops[ref.op], row, found)}
			}
		}
	}
	return rows.Err()
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

func refusal(op *sqlstore.Op, row sqlstore.Row, found bool) error {
	switch {
	case op.Verb == sqlstore.Create:
		return &sqlstore.ExistsError{Key: op.Key, Current: row}
	case !found:
		return &sqlstore.NotFoundError{Key: op.Key}
	}
	return &sqlstore.ConflictError{Key: op.Key, Expect: op.Expect, Current: row}
}
