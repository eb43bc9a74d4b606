package kinds

import (
	"context"

	"github.com/rowlock/rowlock/codecs/budget"
)

type requestedAs struct{}

// WithRequested notes in ctx as which resource a client addressed the storage;
// server/writes does so before it calls a Strategy.
// All that is done then is taken from one budget of steps.
func WithRequested(ctx context.Context, r *Resource) context.Context {
	return &requested{ctx, r, budget.NewSteps("the write")}
}

// requested is the context of a request for a resource. Each write has one, so it is one allocation with its
// contents.
type requested struct {
	context.Context
	resource *Resource
	steps    budget.Steps
}

// Value implements context.Context.
func (r *requested) Value(key any) any {
	if key == (requestedAs{}) {
		return r
	}
	return r.Context.Value(key)
}

// Steps returns the budget of a write for its defaults, its rules and its admission plugins together; nil, which
// is unlimited, outside of a write.
func Steps(ctx context.Context) *budget.Steps {
	if r, ok := ctx.Value(requestedAs{}).(*requested); ok {
		return &r.steps
	}
	return nil
}

// Requested returns the resource that the client addressed, or nil. Few rules depend
// on it: events are checked more strictly under their newer name.
func Requested(ctx context.Context) *Resource {
	if r, ok := ctx.Value(requestedAs{}).(*requested); ok {
		return r.resource
	}
	return nil
}
