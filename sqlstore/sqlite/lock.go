package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
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
		if !sqlstore.Sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("waiting for the lock %q: %w", name, ctx.Err())
		}
	}
}
