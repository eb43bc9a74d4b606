package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Rewrite selects the objects to rewrite.
type Rewrite struct {
	Resources []string // "secrets", "deployments.apps"; nil: all
	Keys      sqlstore.Sealer
	// Form gives the value as it would be written now, of a row that was decrypted; it is
	// the row's own where nothing differs. An error leaves the row alone.
	Form func(row *sqlstore.Row) ([]byte, error)
	Rate int // most rows written in a second; 0: no limit
	// Progress is called after each page; may be nil.
	Progress func(Rewritten)
}

// Rewritten counts the work so far.
type Rewritten struct {
	Objects int64     `json:"objects"` // checked
	Written int64     `json:"written"`
	Left    int64     `json:"left"`     // that cannot be read, and stay as they are
	Reasons []Problem `json:"problems"` // of the first hundred of those

	Past        int64 `json:"past"` // past states that were checked
	PastWritten int64 `json:"pastWritten"`
	PastLeft    int64 `json:"pastLeft"` // that cannot be read; among Reasons, too

	busy bool // another process was at work on some
}

func (w *Rewritten) reason(key sqlstore.Key, revision int64, err error) {
	if len(w.Reasons) < 100 {
		w.Reasons = append(w.Reasons, Problem{Key: key.String(), Revision: revision, Reason: err.Error()})
	}
}

const (
	rewritePage   = 200
	rewriteBatch  = 50
	rewritePasses = 10
)

// Run rewrites every object whose stored form is out of date: encrypted by another provider or key, or in an
// older form. It writes each as servers do, if it has not changed since it was read, so servers may run and
// see the changes. When ctx ends, completed work stays, and the next run does not repeat it. It repeats its
// pass until it finds nothing to do, because servers with an older configuration may write at the same time.
// Then it does the same with the past, which includes the replaced rows. Errors: those of the driver, and
// SealError.
func (r *Rewrite) Run(ctx context.Context, d sqlstore.Driver) (done Rewritten, err error) {
	resources := r.Resources
	if resources == nil {
		resources = []string{""}
	}
	for _, part := range []struct {
		what string
		of   func(context.Context, sqlstore.Driver, string, *Rewritten) error
	}{{"objects", r.resource}, {"past states", r.past}} {
		if done, err = r.passes(ctx, d, part.what, resources, done, part.of); err != nil {
			return done, err
		}
	}
	return done, nil
}

// passes goes over all resources until there is nothing more to write.
func (r *Rewrite) passes(ctx context.Context, d sqlstore.Driver, what string, resources []string, done Rewritten, of func(context.Context, sqlstore.Driver, string, *Rewritten) error) (Rewritten, error) {
	first := done
	for range rewritePasses {
		pass := first // the next pass sees the rows that this one skipped
		pass.Written, pass.PastWritten, pass.Reasons = done.Written, done.PastWritten, append([]Problem{}, first.Reasons...)
		for _, resource := range resources {
			if err := of(ctx, d, resource, &pass); err != nil {
				return pass, err
			}
		}
		before := done
		if done = pass; done.Written == before.Written && done.PastWritten == before.PastWritten && !done.busy {
			return done, nil
		}
	}
	return done, errors.New(what + " are still written in an older form: is a server running with another configuration?")
}

func (r *Rewrite) resource(ctx context.Context, d sqlstore.Driver, resource string, done *Rewritten) error {
	req := sqlstore.ScanRequest{Resource: resource, Limit: rewritePage, Bytes: sqlstore.ChangesBytes}
	for {
		rows, err := d.Scan(ctx, req)
		if err != nil {
			return err
		}
		if err := r.page(ctx, d, rows, done); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(*done)
		}
		if req.Ends(rows) {
			return nil
		}
		req.After = rows[len(rows)-1].Key
	}
}

func (r *Rewrite) page(ctx context.Context, d sqlstore.Driver, rows []sqlstore.Row, done *Rewritten) error {
	var batch []sqlstore.Txn
	for i := range rows {
		if strings.HasPrefix(rows[i].Key.Resource, "~") { // a claim, which has one form
			continue
		}
		done.Objects++
		value, err := r.sealed(ctx, &rows[i], r.Form)
		var sealing *sqlstore.SealError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &sealing):
			return err
		case err != nil:
			done.Left++
			done.reason(rows[i].Key, rows[i].Revision, err)
			continue
		case value == nil:
			continue
		}
		txn := sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: rows[i].Key, Expect: rows[i].Revision, Value: value, ExpiresAt: rows[i].ExpiresAt}}}
		if len(value) >= sqlstore.LargeValue { // see commit
			if err := r.write(ctx, d, []sqlstore.Txn{txn}, done); err != nil {
				return err
			}
			continue
		}
		if batch = append(batch, txn); len(batch) == rewriteBatch {
			if err := r.write(ctx, d, batch, done); err != nil {
				return err
			}
			batch = nil
		}
	}
	return r.write(ctx, d, batch, done)
}

// sealed returns the value to store for a row, in the form that form returns (nil: as it is); nil: the stored value stays.
func (r *Rewrite) sealed(ctx context.Context, row *sqlstore.Row, form func(*sqlstore.Row) ([]byte, error)) ([]byte, error) {
	if row.Damaged != nil { // a new row would get a valid checksum
		return nil, row.Damaged
	}
	plain, stale, err := r.Keys.Open(ctx, row.Key, row.Value)
	if err != nil {
		return nil, err
	}
	value := plain
	if form != nil {
		open := *row
		open.Value = plain
		if value, err = form(&open); err != nil {
			return nil, err
		}
	}
	if !stale && string(value) == string(plain) {
		return nil, nil
	}
	return r.Keys.Seal(ctx, row.Key, value)
}

// write commits each row on its own. The next pass sees rows that others have changed in the meantime.
func (r *Rewrite) write(ctx context.Context, d sqlstore.Driver, batch []sqlstore.Txn, done *Rewritten) error {
	if len(batch) == 0 {
		return nil
	}
	began := time.Now()
	out, err := commit(ctx, d, batch)
	if err != nil {
		return err
	}
	for i := range out {
		err := out[i].Err
		if err == nil {
			done.Written++
		} else if _, unmet := sqlstore.Unmet(err); !unmet {
			return fmt.Errorf("%s: %w", batch[i].Ops[0].Key, err)
		}
	}
	return r.slowed(ctx, len(batch), began)
}

// slowed waits until that many rows, since a time, are within Rate.
func (r *Rewrite) slowed(ctx context.Context, rows int, began time.Time) error {
	if r.Rate <= 0 {
		return nil
	}
	sqlstore.Sleep(ctx, time.Duration(rows)*time.Second/time.Duration(r.Rate)-time.Since(began))
	return ctx.Err()
}
