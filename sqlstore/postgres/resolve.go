package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// Resolve implements sqlstore.Driver. Taking the writers' lock waits for the end
// of the broken connection's transaction; after that its marker is there or never
// will be. A synchronous standby that has confirmed the commit of Resolve has the batch too.
func (d *Driver) Resolve(ctx context.Context) ([]sqlstore.Outcome, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending == nil {
		return nil, false, nil
	}
	ctx, cancel := d.limit(ctx, d.answerTime())
	defer cancel()
	return d.resolve(ctx)
}

// resolve is Resolve for a holder of mu, with a batch pending.
func (d *Driver) resolve(ctx context.Context) (out []sqlstore.Outcome, committed bool, err error) {
	p := d.pending
	// The broken connection's session may still hold the lock, and wait for its client for as long as
	// the network hides the break from it.
	if _, err := d.pool.Exec(ctx, qTerminate, p.pid, d.session); err != nil && !refused(err) {
		return nil, false, fmt.Errorf("resolving a batch: %w", d.translate(ctx, err))
	}
	seq, marked, lost := d.seq+1, true, false // d.seq+1 is the batch in question
	err = d.confirm(ctx, func(tx pgx.Tx) error {
		var head, base int64
		var word string
		if err := tx.QueryRow(ctx, qLock).Scan(&head); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, qMarker, d.marker()).Scan(&word, &base)
		if errors.Is(err, pgx.ErrNoRows) {
			// It was removed, as that of a server long silent, or by a database that went back. Nothing will be
			// committed that expects it, but the batch may have been committed before.
			marked, lost = false, head > p.head
			return nil
		}
		if err != nil {
			return err
		}
		marker, ends, _ := strings.Cut(word, ",")
		if committed = marker == p.marker; !committed {
			// The batch may still be on its way: a marker that it does not expect stops
			// it when it arrives.
			seq = d.seq + 2
			_, err := tx.Exec(ctx, qSetMarker, d.marker(), strconv.FormatInt(seq, 10))
			return err
		}
		if out, err = p.recall(ctx, tx, base, ends); err != nil {
			return err
		}
		return p.explain(ctx, tx, out)
	})
	if err != nil {
		d.closeConnections(err)
		return nil, false, fmt.Errorf("resolving a batch: %w", d.translate(ctx, err))
	}
	d.pending, d.seq, d.marked = nil, seq, marked
	if lost {
		d.wake()
		return nil, false, fmt.Errorf("resolving a batch: %w: the row of kv_meta with the outcome is missing", sqlstore.ErrUncertain)
	}
	if committed {
		d.wake()
	}
	return out, committed, nil
}

// recall reads back which rows a committed batch wrote. Within a wave keys differ
// and revisions follow the order of the operations, so each row belongs to the
// next operation of its key.
func (p *pendingBatch) recall(ctx context.Context, tx pgx.Tx, base int64, ends string) ([]sqlstore.Outcome, error) {
	out := make([]sqlstore.Outcome, len(p.batch))
	prepareOutcomes(p.batch, out, p.now)
	list := strings.Split(ends, ",")
	if len(list) != len(p.waves) {
		return nil, fmt.Errorf("the marker has %d waves, the batch had %d", len(list), len(p.waves))
	}
	for i, w := range p.waves {
		end, err := strconv.ParseInt(list[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the marker is damaged: %w", err)
		}
		rows, err := tx.Query(ctx, qWritten, base, end)
		if err != nil {
			return nil, err
		}
		if err := w.read(rows, out); err != nil {
			return nil, err
		}
		base = end
	}
	return out, nil
}

// explain gives the Txns that did not go ahead an error. The rows that they conflicted with are no
// longer known; the present ones are newer, never wrong.
func (p *pendingBatch) explain(ctx context.Context, tx pgx.Tx, out []sqlstore.Outcome) error {
	refuse(p.batch, out)
	for t := range p.batch {
		if out[t].Err != nil || out[t].Revisions[0] != 0 {
			continue
		}
		var failed error
		for o := range p.batch[t].Ops {
			op := &p.batch[t].Ops[o]
			row, found, err := queryRow(ctx, tx, qLive, op.Key.Resource, op.Key.Namespace, op.Key.Name)
			if err != nil {
				return err
			}
			if op.Verb == sqlstore.Create && found || op.Verb != sqlstore.Create && row.Revision != op.Expect {
				failed = refusal(op, row, found)
				break
			}
		}
		if failed == nil { // its obstacle has gone since
			failed = refusal(&p.batch[t].Ops[0], sqlstore.Row{}, true)
		}
		out[t] = sqlstore.Outcome{Err: failed}
	}
	return nil
}
