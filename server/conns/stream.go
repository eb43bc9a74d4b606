package conns

import (
	"context"
	"net/http"
	"time"
)

// Headroom is what must be left free at the beginning of what is given to a Stream.
const Headroom = 10

// Stream is an answer that has left package net/http. What is written need not wait for
// the client: a goroutine that serves many clients can write to each. Writing is for
// one goroutine at a time, waiting for another.
type Stream interface {
	// Offer writes what stands in b behind Headroom, and does not wait. b may grow, and can
	// be used again. stuck says that the client is slow and that something has been
	// kept: then Settle must be called, or Write.
	TryWrite(b *[]byte) (stuck bool, err error)
	// Write is Offer, but waits while the client is slow, which then has gone.
	Write(b *[]byte) error
	// Settle waits until all that Offer kept has been written.
	Flush() error
	// End ends the answer. complete says that the client is to know that it is whole.
	Close(complete bool)
	// Wait waits until a time or a call of Wake. Where nobody else sees that the client
	// has gone it waits for that as well: then it fails, and the request's context ends.
	// Whoever has called Wake will be looked after by what the caller does next.
	Wait(until time.Time) error
	// Wake ends Wait, or the next one. It may be called by anybody, and at any time.
	Wake()
}

// Leave takes an answer away from package net/http, once the header has been flushed,
// without a length. It is nil where that can't be. Whoever called it must call End
// before the handler returns. The context is the request's.
func TakeOver(ctx context.Context, w http.ResponseWriter) Stream {
	f, two := FromContext(ctx).(*HTTP2Conn)
	for {
		if d, ok := w.(*departure); ok {
			return d.leave()
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = u.Unwrap()
	}
	if two {
		return f.leave(ctx, w)
	}
	return nil
}
