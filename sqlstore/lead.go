package sqlstore

import (
	"context"
	"time"
)

// CompactorLead is the name under which one server compacts a store.
const CompactorLead = "compactor"

const leadEvery = 2 * time.Second // how soon a dead holder is followed

// Lead runs fn on one server at a time under name: it waits to become the
// holder, calls fn with a context that ends when the lead is lost, and tries
// again until ctx ends. When fn returns by itself the lead is given up and sought again.
func (s *Store) Lead(ctx context.Context, name string, fn func(context.Context)) error {
	for ctx.Err() == nil {
		held, release, ok, err := s.driver.Lead(ctx, name)
		if err != nil {
			s.cfg.Log.Debug("cannot ask for the lead", "name", name, "error", err)
		}
		if ok {
			s.hold(ctx, held, fn)
			release()
		}
		sleep(ctx, leadEvery)
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
