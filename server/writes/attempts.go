package writes

import (
	"context"

	"github.com/rowlock/rowlock/sqlstore"
)

// attempts is how a write of a key is tried: as often as another write is faster, until
// it is stored, refused, or the context ends (docs/design/writes.md).
type attempts struct {
	key    sqlstore.Key
	user   string
	dry    bool // it waits for nobody
	pinned bool // the client names the resource version it replaces
}

// run calls try, and again after each write that was faster. Who lost once waits for its
// turn among the writers of the key.
func (a attempts) run(ctx context.Context, w *Writer, try func() error) error {
	turn := w.queues.Writer(a.key, a.user)
	defer turn.Done()
	for {
		if !a.dry {
			if err := turn.Try(ctx, a.pinned); err != nil {
				return err
			}
		}
		err := try()
		if err == nil {
			return nil
		}
		if err := w.Objects.Overtaken(ctx, err); err != nil {
			return err
		}
		turn.Lost()
	}
}
