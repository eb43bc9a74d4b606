package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// errLeadLost reports that a batch was not written, because a lead on whose behalf it writes belongs to another process.
var errLeadLost = errors.New("a lead is lost")

// led returns the leads on whose behalf a batch writes, and their holders. Txns of leads that this process has lost are
// without Ops in rest.
func (l *leads) led(batch []sqlstore.Txn) (rest []sqlstore.Txn, names, holders []string) {
	i := slices.IndexFunc(batch, func(t sqlstore.Txn) bool { return t.Lead != "" })
	if i < 0 {
		return batch, nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rest = slices.Clone(batch)
	for ; i < len(rest); i++ {
		name := rest[i].Lead
		if name == "" {
			continue
		}
		t := l.held[name]
		switch {
		case t == nil:
			rest[i].Ops = nil
		case !slices.Contains(names, name):
			names, holders = append(names, name), append(holders, t.holder)
		}
	}
	return rest, names, holders
}

// refuse sets the outcomes of Txns that led has emptied, and reports whether no Txn is left.
func refuse(batch []sqlstore.Txn, out []sqlstore.Outcome) (all bool) {
	all = true
	for i := range batch {
		if len(batch[i].Ops) > 0 {
			all = false
			continue
		}
		out[i] = sqlstore.Outcome{Err: fmt.Errorf("leading %q: %w", batch[i].Lead, sqlstore.ErrLeadLost)}
	}
	return all
}

// loseOthers ends the terms whose rows are another process's, and reports whether there was one.
func (d *Driver) loseOthers(ctx context.Context, names, holders []string) (lost bool, err error) {
	rows, err := d.pool.Query(ctx, qLeadsLost, names, holders)
	if err != nil {
		return false, err
	}
	var name, holder string
	_, err = pgx.ForEachRow(rows, []any{&name, &holder}, func() error {
		lost = true
		if t := d.leads.term(name); t != nil && t.holder == holder {
			d.leads.lose(name, t)
		}
		return nil
	})
	return lost, err
}

// change runs a transaction of a method of History. If ctx works on behalf of a lead, the transaction fails unless this
// process has the lead, and the lead does not move before the transaction has ended.
func (d *Driver) change(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if name := sqlstore.Leading(ctx); name != "" {
			if err := d.fence(ctx, tx, name); err != nil {
				return fmt.Errorf("leading %q: %w", name, err)
			}
		}
		return fn(tx)
	})
}

func (d *Driver) fence(ctx context.Context, tx pgx.Tx, name string) error {
	t := d.leads.term(name)
	if t == nil {
		return sqlstore.ErrLeadLost
	}
	var holder string
	b := &pgx.Batch{}
	// The transaction of a process that was stopped ends, as no other server can take the lead before.
	b.Queue(fmt.Sprintf(qLeaderWaits, max(1, d.cfg.LeadFor.Milliseconds())))
	b.Queue(qLeader, name).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&holder); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if holder != t.holder {
		d.leads.lose(name, t)
		return sqlstore.ErrLeadLost
	}
	return nil
}
