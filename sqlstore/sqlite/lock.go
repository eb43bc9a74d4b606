package sqlite

import (
	"context"
	"fmt"
	"time"
)

// exclusively runs fn while holding the lock of a name, for which it waits.
func (l *lockFile) exclusively(ctx context.Context, name string, fn func() error) error {
	for {
		ok, err := l.try(name)
		if err != nil {
			return err
		}
		if ok {
			defer l.release(name)
			return fn()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the lock %q: %w", name, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
