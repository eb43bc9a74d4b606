package filters

import (
	"context"
	"sync"
	"time"
)

// until is a context with a deadline and an end, as context.WithDeadline makes it.
// Most requests never wait for anything: only the first to ask for Done pays for
// the timer and for being told of the end of the context around it.
type until struct {
	context.Context // the one around it
	at              time.Time

	mu     sync.Mutex
	real   context.Context // nil until it is asked for
	cancel context.CancelFunc
}

// ended is a context at its end.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// end ends the context.
func (u *until) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.cancel != nil:
		u.cancel()
	case u.real == nil:
		u.real = ended
	}
}

// Deadline implements context.Context.
func (u *until) Deadline() (time.Time, bool) { return u.at, true }

// Done implements context.Context.
func (u *until) Done() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.real == nil {
		u.real, u.cancel = context.WithDeadline(u.Context, u.at)
	}
	return u.real.Done()
}

func (u *until) asked() context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.real
}

// Err implements context.Context.
func (u *until) Err() error {
	if real := u.asked(); real != nil {
		return real.Err()
	}
	if err := u.Context.Err(); err != nil {
		return err
	}
	if time.Now().Before(u.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context. Contexts made of this one look here for what
// ends them.
func (u *until) Value(key any) any {
	if real := u.asked(); real != nil && real != ended {
		return real.Value(key)
	}
	return u.Context.Value(key)
}
