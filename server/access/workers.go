package access

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// InParallel calls do for the elements of a list, several at a time, until one call fails, and returns its
// error. A request in process needs tens of kilobytes of stack, which a new goroutine for each would have to
// grow first; a few workers do it once.
func InParallel(ctx context.Context, workers int, list []func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, len(list)) {
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return nil
				}
				if err := list[i](ctx); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
