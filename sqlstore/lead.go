package sqlstore

import (
	"context"
	"time"
)

// CompactorLead is the name under which one server compacts a store.
const CompactorLead = "compactor"

const leadEvery = 100 * time.Millisecond // interval at which a server that does not lead tries to

type leadKey struct{}

// Leading returns the name of the lead on whose behalf ctx works, "" if none. Writes with such a context
// fail with ErrLeadLost once another server has the lead, also if this one was stopped and does not know it yet.
func Leading(ctx context.Context) string {
	name, _ := ctx.Value(leadKey{}).(string)
	return name
}

// WithLead returns a context that works on behalf of a lead: see Leading.
func WithLead(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, leadKey{}, name)
}

// Lead runs fn on one server at a time under name: it waits to become the
// holder, calls fn with a context that ends when the lead is lost, and tries
// again until ctx ends. Writes with this context are written only while the server leads: see Leading. When fn returns by
// itself the lead is given up and sought again.
func (s *Store) Lead(ctx context.Context, name string, fn func(context.Context)) error {
	for ctx.Err() == nil {
		held, release, ok, err := s.driver.Lead(ctx, name)
		if err != nil {
			s.cfg.Log.Debug("cannot try to take the lead", "name", name, "error", err)
		}
		if ok {
			s.hold(WithLead(ctx, name), held, fn)
			release()
		}
		Sleep(ctx, leadEvery)
	}
	return ctx.Err()
}

func (s *Store) hold(ctx context.Context, held <-chan struct{}, fn func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(ctx)
	}()
	select {
	case <-held:
		cancel()
		<-done
	case <-done:
	}
}
