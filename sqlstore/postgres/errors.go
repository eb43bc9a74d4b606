package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/rowlock/rowlock/sqlstore"
)

// byCode says which store error an SQLSTATE is; classes stand by their first two characters.
var byCode = map[string]error{
	"08":    sqlstore.ErrUnavailable, // connection exceptions
	"28":    sqlstore.ErrUnavailable, // a password that changed, a role that may not log in now
	"3D000": sqlstore.ErrUnavailable, // a database that is being replaced
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

// errSilent is the cause of a context that ended because no answer came.
var errSilent = errors.New("no answer in time")

// translate is the function of that name, for a call made under ctx. It gives up the
// pool's other connections where the error says that they share its fate.
func (d *Driver) translate(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) == errSilent {
		err = fmt.Errorf("%w: %w: %w", sqlstore.ErrUnavailable, errSilent, err)
	} else {
		err = translate(err)
	}
	if errors.Is(err, sqlstore.ErrUnavailable) {
		d.suspect(err)
	}
	return err
}

// suspect gives up all connections after an error that came from the network, from
// a server that goes down, or from one that takes no writes any more: the next ones
// find the server that does. Once a second is enough.
func (d *Driver) suspect(err error) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code != "25006" && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08") {
		return
	}
	now, last := time.Now().UnixNano(), d.reset.Load()
	if now-last > int64(time.Second) && d.reset.CompareAndSwap(last, now) {
		d.pool.Reset()
	}
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

// redact hides the connection string that parse errors quote, and says what is wrong
// where that cannot be a part of it.
func redact(err error) error {
	var quoting *pgconn.ParseConfigError
	if !errors.As(err, &quoting) {
		return err
	}
	const general = "the connection string or a PG* variable is not valid"
	if inner := quoting.Unwrap(); inner != nil {
		var file *fs.PathError
		if errors.As(inner, &file) {
			return fmt.Errorf("%s: %w", general, file)
		}
	}
	// What follows the quoted string names the setting; parts of a string that cannot
	// be read as a whole may be anything.
	text := err.Error()
	if i := strings.LastIndexByte(text, '`'); i >= 0 {
		if reason := strings.TrimPrefix(text[i+1:], ": "); reason != "" && !strings.HasPrefix(reason, "failed to parse as") {
			return fmt.Errorf("%s: %s", general, reason)
		}
	}
	return errors.New(general)
}
