package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlock/rowlock/sqlstore"
)

// With a synchronous standby, COMMIT waits until the standby has the transaction, and no other session sees the
// transaction before that. If an administrator cancels this wait, PostgreSQL commits nevertheless: other sessions
// see what a failover would lose, and COMMIT reports success, with a warning. So
//
//   - the driver never ends it: a batch that it stops waiting for is not cancelled (link.writes), and Resolve terminates a
//     session only if that waits for its client (qTerminate);
//   - if an administrator ends it (pg_cancel_backend), the outcome of the batch is unknown until a later commit, that of
//     Resolve, was confirmed, and with it everything before it.

var (
	errNotCancelled = errors.New("a commit is not cancelled")
	errUnconfirmed  = fmt.Errorf("%w: a commit's wait for a synchronous standby was cancelled, and the standby may lack the commit", sqlstore.ErrUnavailable)
)

// noticed is called with each notice or warning of a connection.
func noticed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine != "SyncRepWaitForLSN" {
		return
	}
	if l := linkOf(c); l != nil {
		l.unconfirmed.Store(true)
	}
}

// confirmed returns errUnconfirmed if a commit on the connection was not confirmed since the last call.
func confirmed(c *pgx.Conn) error {
	if l := linkOf(c.PgConn()); l != nil && l.unconfirmed.Swap(false) {
		return errUnconfirmed
	}
	return nil
}

// uncancelled prevents requests to cancel the statements that are sent next. The caller calls done once their outcome is
// known.
func uncancelled(c *pgx.Conn) (done func()) {
	l := linkOf(c.PgConn())
	if l == nil {
		return func() {}
	}
	l.writes.Store(true)
	return func() { l.writes.Store(false) }
}

// confirm runs a transaction. It fails if a synchronous standby has not confirmed the commit.
func (d *Driver) confirm(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := pgx.BeginFunc(ctx, c, fn); err != nil {
			return err
		}
		return confirmed(c.Conn())
	})
}
