package filters

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// EndWith ends long-running requests when ctx ends: while a server drains, watches only finish the event that they send. They
// end at random moments within grace, so that their clients do not all connect again at once.
func EndWith(end context.Context, grace time.Duration) Filter {
	e := &endings{grace: grace, open: map[*ending]struct{}{}}
	context.AfterFunc(end, e.end)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scope := request.From(r.Context())
			if !LongRunning(scope.Info) {
				next.ServeHTTP(w, r)
				return
			}
			r, one := e.begin(r)
			scope.End = one.stop
			defer scope.OnEnd(one.free)
			next.ServeHTTP(w, r)
		})
	}
}

// endings are the long-running requests that end together. A set of them needs less memory for each than derived contexts.
type endings struct {
	grace time.Duration

	mu    sync.Mutex
	open  map[*ending]struct{}
	ended bool
}

// ending is a request in endings.
type ending struct {
	of   *endings
	stop context.CancelFunc
	own  bool // begin has made the context
}

// begin gives a request a context that ends with the others, or makes its own end with them if the reader of its connection
// can do that.
func (e *endings) begin(r *http.Request) (*http.Request, *ending) {
	ctx, one := r.Context(), &ending{of: e}
	if one.stop = wire.EndOf(ctx); one.stop == nil {
		ctx, one.stop = context.WithCancel(ctx)
		one.own = true
		r = r.WithContext(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		one.endSoon()
	} else {
		e.open[one] = struct{}{}
	}
	return r, one
}

// end ends all requests, and each that begins later.
func (e *endings) end() {
	e.mu.Lock()
	e.ended = true
	open := e.open
	e.open = map[*ending]struct{}{}
	e.mu.Unlock() // requests that end take it
	for one := range open {
		one.endSoon()
	}
}

func (o *ending) endSoon() {
	if o.of.grace > 0 {
		time.AfterFunc(rand.N(o.of.grace), o.stop)
		return
	}
	o.stop()
}

// free frees the context at the end of the request.
func (o *ending) free() {
	o.of.mu.Lock()
	delete(o.of.open, o)
	o.of.mu.Unlock()
	if o.own {
		o.stop()
	}
}
