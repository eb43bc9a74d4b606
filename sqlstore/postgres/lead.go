package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Lead implements sqlstore.Driver with a row that its holder renews: it needs no
// session of its own, and poolers and distributed databases know it too. The
// holder stops before the row's time has passed, as others take it after that.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if d.closed() {
		return nil, nil, false, sqlstore.ErrClosed
	}
	holder := fmt.Sprintf("%s/%d", d.nonce, d.leads.Add(1))
	began := time.Now()
	ok, err := d.takeLead(ctx, name, holder)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	held, stop := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	d.loops.Add(1)
	go func() {
		defer d.loops.Done()
		defer close(done)
		defer close(held)
		d.keepLead(name, holder, began, stop)
	}()
	var once sync.Once
	release := func() {
		once.Do(func() {
			close(stop)
			<-done
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_, _ = d.pool.Exec(ctx, qUnlead, name, holder) // otherwise it ends by itself
		})
	}
	return held, release, true, nil
}

func (d *Driver) takeLead(ctx context.Context, name, holder string) (bool, error) {
	ctx, cancel := d.limit(ctx, d.cfg.LeadFor)
	defer cancel()
	tag, err := d.pool.Exec(ctx, qLead, name, holder, d.cfg.LeadFor)
	if err != nil {
		return false, fmt.Errorf("leading %q: %w", name, d.translate(ctx, err))
	}
	return tag.RowsAffected() == 1, nil
}

// keepLead renews until it is told to stop, the driver closes, or the lead is lost.
// taken is a time before the last renewal.
func (d *Driver) keepLead(name, holder string, taken time.Time, stop <-chan struct{}) {
	tick := time.NewTicker(d.cfg.LeadFor / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		case <-d.closing:
			return
		}
		if time.Since(taken) > d.cfg.LeadFor*4/5 {
			return
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.LeadFor/5)
		ok, err := d.takeLead(ctx, name, holder)
		cancel()
		switch {
		case ok:
			taken = began
		case err == nil:
			return // somebody else has it
		default:
			d.cfg.Log.Debug("cannot renew the lead", "name", name, "error", err)
		}
	}
}
