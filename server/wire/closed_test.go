package wire_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// leaving is a connection of HTTP/1 whose client can leave.
type leaving struct {
	wire.Conn
	gone atomic.Bool
}

func (l *leaving) Closed() bool { return l.gone.Load() }

// TestUntilClosed: the context of a request lives as long as its client is there or its handler runs. No goroutine is left
// behind, or the bubble would not end.
func TestUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &leaving{}
		ctx := context.WithValue(t.Context(), wire.Key{}, wire.Conn(conn))
		until, stop := wire.UntilClosed(ctx)
		if again, stop := wire.UntilClosed(until); again != until {
			t.Error("two goroutines look at one connection")
			stop()
		}
		time.Sleep(time.Hour)
		if err := until.Err(); err != nil {
			t.Errorf("the client is there: %v", err)
		}
		conn.gone.Store(true)
		time.Sleep(time.Minute)
		if until.Err() == nil {
			t.Error("the context outlives its client")
		}
		stop()

		conn.gone.Store(false)
		until, stop = wire.UntilClosed(ctx)
		stop()
		if until.Err() == nil {
			t.Error("the context outlives its handler")
		}
	})
}
