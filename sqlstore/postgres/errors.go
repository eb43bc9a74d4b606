package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/rowlock/rowlock/sqlstore"
)

// byCode says which store error an SQLSTATE is; classes stand by their first two characters.
var byCode = map[string]error{
	"08":    sqlstore.ErrUnavailable, // connection exceptions
	"25006": sqlstore.ErrUnavailable, // read-only transaction: the server became a standby
	"40001": sqlstore.ErrBusy,        // serialization failure
	"40P01": sqlstore.ErrBusy,        // deadlock
	"40003": sqlstore.ErrUncertain,   // statement completion unknown
	"53":    sqlstore.ErrUnavailable, // too many connections, out of memory
	"53100": sqlstore.ErrFull,        // disk full
	"53400": sqlstore.ErrFull,        // a configured limit
	"54000": sqlstore.ErrTooLarge,    // a program limit
	"55P03": sqlstore.ErrBusy,        // lock timeout
	"57014": sqlstore.ErrBusy,        // statement timeout
	"57":    sqlstore.ErrUnavailable, // shutdown, crash, not yet up
	"58030": sqlstore.ErrUnavailable, // I/O error
}

// translate puts a store error in front of what the database or the network says.
func translate(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		kind := byCode[pg.Code]
		if kind == nil && len(pg.Code) == 5 {
			kind = byCode[pg.Code[:2]]
		}
		if kind == nil {
			return err
		}
		return fmt.Errorf("%w: %w", kind, err)
	}
	if errors.Is(err, puddle.ErrClosedPool) {
		return fmt.Errorf("%w: %w", sqlstore.ErrClosed, err)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &connect):
		return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, redact(err))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &network), pgconn.Timeout(err), isBroken(err):
		return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, err)
	}
	return err
}

// isBroken knows the errors of a connection that ended.
func isBroken(err error) bool {
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return pgconn.SafeToRetry(err)
}

// refused says that the server itself ended a statement, so that the rest of the
// transaction, COMMIT among it, was not done. Anything worse leaves that open.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && pg.Code != "40003"
}

// fenced says that qFence ended the transaction.
func fenced(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22012"
}

// redact hides the connection string that parse errors quote.
func redact(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("the connection string or a PG* variable is not valid")
	}
	return err
}
