package storetest

import (
	"context"

	"github.com/rowlock/rowlock/sqlstore"
)

// WithoutHints is a driver that announces no change of another server, as if the connection that listens was dead. A server on it is
// behind until it looks at the table.
type WithoutHints struct{ sqlstore.Driver }

// Hints implements sqlstore.Log.
func (WithoutHints) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{})
	context.AfterFunc(ctx, func() { close(hints) })
	return hints
}
