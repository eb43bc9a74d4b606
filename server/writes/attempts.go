package writes

import (
	"context"
	"errors"

	"github.com/rowlock/rowlock/sqlstore"
)

// attempts controls the attempts of a write: it is repeated after each conflict with another write, until it
// is stored, refused, or the context ends (docs/design/writes.md).
type attempts struct {
	key    sqlstore.Key
	user   string
	dry    bool // it does not wait for other writes
	pinned bool // the client names the resource version it replaces
}

// run calls try, and again after each conflict. After the first conflict, a write waits for its turn among
// the writers of the key.
func (a attempts) run(ctx context.Context, w *Writer, try func() error) error {
	turn := w.queues.Writer(a.key, a.user)
	defer turn.Done()
	for first := true; ; first = false {
		if !a.dry {
			if err := turn.Wait(ctx, a.pinned); err != nil {
				return err
			}
		}
		err := w.fresh(ctx, first, try)
		if err == nil {
			return nil
		}
		if err := w.Objects.AwaitConflict(ctx, err); err != nil {
			return err
		}
		turn.Conflicted()
	}
}

// fresh attempts a write. A precondition may fail because the client has seen a write of another server that
// has not arrived here yet: in the first attempt, fresh then waits for every write of all servers, and tries
// again.
func (w *Writer) fresh(ctx context.Context, first bool, try func() error) error {
	err := try()
	var stale *staleError
	if !errors.As(err, &stale) {
		return err
	}
	if stale.asked <= w.Objects.Revision() || !first {
		return stale.Unwrap()
	}
	if err := w.Objects.CatchUp(ctx); err != nil {
		return err
	}
	if err = try(); errors.As(err, &stale) {
		return stale.Unwrap()
	}
	return err
}
