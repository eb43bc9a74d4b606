package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// leads is what was seen of the leads that others hold. A lead is theirs until it has
// not been renewed for longer than LeadFor, which each process measures by itself: no clock that
// could be set has a part in it, the database's neither.
type leads struct {
	mu    sync.Mutex
	taken int64 // how many holders this process has been
	seen  map[string]term
}

// term is a state of a lead's row.
type term struct {
	holder string
	until  time.Time
	since  time.Time // when it was first seen, with a monotonic reading
}

// Lead implements sqlstore.Driver with a row that its holder renews: it needs no
// session of its own, and poolers and distributed databases know it too. The
// holder stops before the row has stood for LeadFor, as others take it after that.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if d.closed() {
		return nil, nil, false, sqlstore.ErrClosed
	}
	holder := d.leads.holder(d.nonce)
	began := time.Now()
	ok, err := d.takeLead(ctx, name, holder)
	if err == nil && !ok {
		err = d.lookAtLead(ctx, name)
	}
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

func (l *leads) holder(nonce string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	return fmt.Sprintf("%s/%d", nonce, l.taken)
}

// over returns the state of a lead that has stood for long enough, or one that no
// row can have.
func (l *leads) over(name string, after time.Duration) term {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.seen[name]; ok && time.Since(t.since) >= after {
		return t
	}
	return term{}
}

// saw remembers a state of a lead; a state that was seen before keeps its time.
func (l *leads) saw(name string, t term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.seen[name]; old.holder == t.holder && old.until.Equal(t.until) {
		return
	}
	if l.seen == nil {
		l.seen = make(map[string]term)
	}
	l.seen[name] = t
}

func (d *Driver) takeLead(ctx context.Context, name, holder string) (bool, error) {
	ctx, cancel := d.limit(ctx, d.cfg.LeadFor)
	defer cancel()
	over := d.leads.over(name, d.cfg.LeadFor*6/5)
	tag, err := d.pool.Exec(ctx, qLead, name, holder, d.cfg.LeadFor, over.holder, over.until)
	if err != nil {
		return false, fmt.Errorf("leading %q: %w", name, d.translate(ctx, err))
	}
	return tag.RowsAffected() == 1, nil
}

// lookAtLead reads the holder of a lead.
func (d *Driver) lookAtLead(ctx context.Context, name string) error {
	ctx, cancel := d.limit(ctx, d.cfg.LeadFor)
	defer cancel()
	var t term
	err := d.pool.QueryRow(ctx, qLeader, name).Scan(&t.holder, &t.until)
	if errors.Is(err, pgx.ErrNoRows) { // released just now
		return nil
	}
	if err != nil {
		return fmt.Errorf("leading %q: %w", name, d.translate(ctx, err))
	}
	t.since = time.Now()
	d.leads.saw(name, t)
	return nil
}

// keepLead renews until stop is closed, the driver closes, or the lead is lost.
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
