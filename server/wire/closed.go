package wire

import (
	"context"
	"time"
)

// closedPollInterval is the polling interval of UntilClosed.
const closedPollInterval = 5 * time.Second

// pollingKey is the key of a value that contexts of UntilClosed have.
type pollingKey struct{}

// Closed reports whether the client has closed the connection, or its side of it, even if there is something from it to be read.
func (s *Socket) Closed() (is bool) {
	if raw := rawConn(s.Conn); raw != nil && raw.Control(func(fd uintptr) { is = closed(fd) }) != nil {
		return true // by this server
	}
	return is
}

// UntilClosed returns a context that ends when the client of a request closes its connection of HTTP/1. Package net/http ends the
// context of a request by itself, but not once the client has sent anything behind the request: it reads no further then. stop
// must be called when the handler returns. A context of UntilClosed is returned as it is.
func UntilClosed(ctx context.Context) (until context.Context, stop func()) {
	socket, ok := From(ctx).(interface{ Closed() bool })
	if !ok || ctx.Value(pollingKey{}) != nil {
		return ctx, func() {}
	}
	until, cancel := context.WithCancel(context.WithValue(ctx, pollingKey{}, true))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(closedPollInterval)
		defer tick.Stop()
		for {
			select {
			case <-until.Done():
				return
			case <-tick.C:
				if socket.Closed() {
					cancel()
				}
			}
		}
	}()
	return until, func() {
		cancel()
		<-done
	}
}
