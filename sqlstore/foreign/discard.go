package foreign

import "context"

// Discard is a Sink that keeps nothing, for trying whether everything could be put.
type Discard struct{}

var _ Sink = Discard{}

// Describe implements Sink.
func (Discard) Describe() string { return "nowhere" }

// Put implements Sink.
func (Discard) Put(ctx context.Context, e Entry) error {
	if err := Check(e.Key, int64(len(e.Value))); err != nil {
		return err
	}
	return ctx.Err()
}

// Commit implements Sink.
func (Discard) Commit(ctx context.Context, _ int64) error { return ctx.Err() }

// Abort implements Sink.
func (Discard) Abort() error { return nil }
