package kms

import (
	"context"
	"errors"
	"sync"
	"time"
)

// callGroup makes one call at a time for each question. It owns no goroutine: the first caller asks, and later
// ones wait for its answer. If that caller is canceled, another asks.
type callGroup[T any] struct {
	mu    sync.Mutex
	under map[string]*pendingCall[T]
}

type pendingCall[T any] struct {
	done chan struct{}
	val  T
	err  error
	left bool // the caller was canceled
}

func (f *callGroup[T]) do(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	for {
		f.mu.Lock()
		under, ok := f.under[key]
		if !ok {
			return f.lead(ctx, key, ask) // unlocks
		}
		f.mu.Unlock()
		select {
		case <-under.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if !under.left {
			return under.val, under.err
		}
	}
}

func (f *callGroup[T]) lead(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	mine := &pendingCall[T]{done: make(chan struct{}), left: true}
	if f.under == nil {
		f.under = map[string]*pendingCall[T]{}
	}
	f.under[key] = mine
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.under, key)
		f.mu.Unlock()
		close(mine.done)
	}()
	mine.val, mine.err = ask(ctx)
	mine.left = ctx.Err() != nil && errors.Is(mine.err, ctx.Err())
	return mine.val, mine.err
}

const (
	goodFor = 20 * time.Second
	badFor  = 3 * time.Second
)

// healthCheck checks the health of a plugin: one call at a time, and none for a while after it.
type healthCheck struct {
	ask func(context.Context) error

	flights callGroup[struct{}]
	mu      sync.Mutex
	known   error
	until   time.Time
}

func (p *healthCheck) check(ctx context.Context) error {
	if err, ok := p.last(); ok {
		return err
	}
	_, err := p.flights.do(ctx, "", func(ctx context.Context) (struct{}, error) {
		if err, ok := p.last(); ok {
			return struct{}{}, err // another caller asked in between
		}
		err := p.ask(ctx)
		if err != nil && ctx.Err() != nil {
			return struct{}{}, ctx.Err() // nothing was learned
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known, p.until = err, time.Now().Add(goodFor)
		if err != nil {
			p.until = time.Now().Add(badFor)
		}
		return struct{}{}, err
	})
	return err
}

// last returns the newest result; ok is false if it is too old.
func (p *healthCheck) last() (err error, ok bool) { //nolint:revive // whether it is known comes last, as elsewhere
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, time.Now().Before(p.until)
}
