package kinds

import "context"

type warnTo struct{}

// WithWarner notes in ctx where warnings go that arise while an object is
// prepared; the verbs do so before they call a Strategy.
func WithWarner(ctx context.Context, warn func(text string)) context.Context {
	return context.WithValue(ctx, warnTo{}, warn)
}

// Warn tells the client something about its request. Without a warner in ctx it
// is lost. Warnings that can be computed from a prepared object belong in
// Strategy.Warnings.
func Warn(ctx context.Context, text string) {
	if warn, ok := ctx.Value(warnTo{}).(func(string)); ok {
		warn(text)
	}
}
