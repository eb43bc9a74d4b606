package foreign

import "context"

// Nowhere is a Sink that keeps nothing, for trying whether everything could be put.
type Nowhere struct{}

var _ Sink = Nowhere{}

// Describe implements Sink.
func (Nowhere) Describe() string { return "nowhere" }

// Put implements Sink.
func (Nowhere) Put(ctx context.Context, e Entry) error {
	if err := Check(e.Key, int64(len(e.Value))); err != nil {
		return err
	}
	return ctx.Err()
}

// Commit implements Sink.
func (Nowhere) Commit(ctx context.Context, _ int64) error { return ctx.Err() }

// Abort implements Sink.
func (Nowhere) Abort() error { return nil }
