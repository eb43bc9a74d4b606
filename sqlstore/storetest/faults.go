package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// disconnecting is a driver whose connection breaks at the worst moments: before a
// commit, or after it with the answer lost.
type disconnecting struct {
	sqlstore.Driver
	calls atomic.Int64
	mu    sync.Mutex
	out   []sqlstore.Outcome
	lost  bool // the answer to a commit that happened
	stuck int  // how often Resolve fails first
}

var errCut = errors.New("connection cut")

func (c *disconnecting) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.calls.Add(1) % 5 {
	case 1:
		return nil, fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, errCut)
	case 2:
		c.lost = false
		return nil, fmt.Errorf("%w: %w", sqlstore.ErrUncertain, errCut)
	case 3:
		out, err := c.Driver.Apply(ctx, batch, now)
		if err != nil {
			return nil, err
		}
		c.out, c.lost, c.stuck = out, true, 2
		return nil, fmt.Errorf("%w: %w", sqlstore.ErrUncertain, errCut)
	}
	return c.Driver.Apply(ctx, batch, now)
}

func (c *disconnecting) Resolve(ctx context.Context) ([]sqlstore.Outcome, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stuck > 0 {
		c.stuck--
		return nil, false, sqlstore.ErrUnavailable
	}
	if c.lost {
		return c.out, true, nil
	}
	return nil, false, nil
}

// failing is a driver whose every commit is cut before it is done.
type failing struct{ sqlstore.Driver }

func (m *failing) Apply(context.Context, []sqlstore.Txn, time.Time) ([]sqlstore.Outcome, error) {
	return nil, fmt.Errorf("%w: %w", sqlstore.ErrUncertain, errCut)
}

func (m *failing) Resolve(context.Context) ([]sqlstore.Outcome, bool, error) { return nil, false, nil }

// broken is a driver that cannot be reached while down is set.
type broken struct {
	sqlstore.Driver
	down  atomic.Bool
	cause error
}

func (b *broken) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	if b.down.Load() {
		return nil, b.cause
	}
	return b.Driver.Apply(ctx, batch, now)
}

func (b *broken) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	if b.down.Load() {
		return sqlstore.Bounds{}, b.cause
	}
	return b.Driver.Bounds(ctx)
}

func (b *broken) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	if b.down.Load() {
		return nil, b.cause
	}
	return b.Driver.Changes(ctx, after, limit, previous)
}

var faultTests = map[string]func(*testing.T, Database){
	"a commit cut in mid-flight": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := serve(t, &disconnecting{Driver: d}, sqlstore.Config{MaxBatch: 4})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 10 {
					// A guess in either direction shows: as ExistsError, or as a hole.
					if _, err := s.Write(t.Context(), create(pod(fmt.Sprintf("%d-%d", w, i)), "x").Ops...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		wantBounds(t, d, 0, 40)
		if log := s.Log(t); len(log) != 40 {
			t.Fatalf("%d changes were shown", len(log))
		}
	},
	"commits that are always cut": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := serve(t, &failing{Driver: d}, sqlstore.Config{RetryFor: 50 * time.Millisecond})
		_, err := s.Write(t.Context(), create(pod("a"), "a").Ops...)
		wantErr(t, err, sqlstore.ErrUnavailable)
		if errors.Is(err, sqlstore.ErrUncertain) {
			t.Fatalf("the outcome was found, but the error is %v", err)
		}
		wantBounds(t, d, 0, 0)
	},
	"a database that is away": func(t *testing.T, db Database) {
		d := db.Open(t)
		b := &broken{Driver: d, cause: sqlstore.ErrUnavailable}
		s := serve(t, b, sqlstore.Config{RetryFor: 50 * time.Millisecond})
		write(t, s, create(pod("a"), "a").Ops[0])
		b.down.Store(true)
		_, err := s.Write(t.Context(), create(pod("b"), "b").Ops...)
		wantErr(t, err, sqlstore.ErrUnavailable)
		b.down.Store(false)
		write(t, s, create(pod("b"), "b").Ops[0])
		wantBounds(t, d, 0, 2)
	},
	"a write waits for a short absence": func(t *testing.T, db Database) {
		b := &broken{Driver: db.Open(t), cause: sqlstore.ErrBusy}
		s := serve(t, b, sqlstore.Config{RetryFor: patience})
		b.down.Store(true)
		time.AfterFunc(30*time.Millisecond, func() { b.down.Store(false) })
		write(t, s, create(pod("a"), "a").Ops[0])
	},
	"a feed that fell behind": func(t *testing.T, db Database) {
		other := db.Open(t)
		b := &broken{Driver: db.Open(t), cause: sqlstore.ErrUnavailable}
		s := serve(t, b, sqlstore.Config{})
		write(t, s, create(pod("a"), "a").Ops[0])
		b.down.Store(true)
		updates(t, other, pod("a"), 1, 2500) // more than a page
		b.down.Store(false)
		write(t, s, create(pod("b"), "b").Ops[0]) // finds the gap before it
		if log := s.Log(t); len(log) != 2502 || log[2500].Key != pod("a") || log[2501].Key != pod("b") {
			t.Fatalf("%d changes were shown", len(log))
		}
	},
	"a feed cut off for longer than the history": cutOff,
	"a feed that is cut off again and again":     cutOffAgain,
	"only the bad write of a batch fails": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := serve(t, &rejecting{Driver: d}, sqlstore.Config{})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, err := s.Write(t.Context(), create(pod(fmt.Sprint(i)), map[bool]string{true: "poison", false: "x"}[i%7 == 0]).Ops...)
				if (err != nil) != (i%7 == 0) {
					t.Errorf("write %d gave %v", i, err)
				}
			})
		}
		wg.Wait()
		wantBounds(t, d, 0, 17)
	},
}

// rejecting fails every batch that holds a value it does not like.
type rejecting struct{ sqlstore.Driver }

func (p *rejecting) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	for _, txn := range batch {
		if string(txn.Ops[0].Value) == "poison" {
			return nil, errors.New("the database does not take this value")
		}
	}
	return p.Driver.Apply(ctx, batch, now)
}
