package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/rowlock/rowlock/sqlstore"
)

// errStandby is the error of a server that has become a standby: another server accepts writes, or this one
// will again.
var errStandby = fmt.Errorf("%w: %w", sqlstore.ErrReadOnly, sqlstore.ErrUnavailable)

// damaged reports that PostgreSQL found its files damaged.
var damaged = &sqlstore.CorruptError{Reason: "the database is damaged"}

// byCode maps an SQLSTATE to a store error; classes have their first two characters. Two questions decide:
// whether the same operation may succeed when it is retried, and by whom, and whether the error concerns all
// writes. A code that matches none of these is ErrRefused; nil concerns one value only.
var byCode = map[string]error{
	"08":    sqlstore.ErrUnavailable, // connection exceptions
	"22":    nil,                     // a value that cannot be stored or computed
	"23":    nil,                     // a constraint that an administrator added
	"23505": sqlstore.ErrRefused,     // a revision or key that is there: the counter has gone back
	"25":    sqlstore.ErrUnavailable, // a transaction that is not in the state it was left in, or timed out
	"25006": errStandby,              // read-only transaction: the server became a standby
	"26":    sqlstore.ErrUnavailable, // a prepared statement that was removed from outside: another session has it
	"28":    sqlstore.ErrUnavailable, // a password that changed, a role that may not log in now
	"3D000": sqlstore.ErrUnavailable, // a database that is being replaced
	"40":    sqlstore.ErrBusy,        // serialization failure, deadlock
	"40002": nil,                     // a constraint, at the end of a transaction
	"40003": sqlstore.ErrUncertain,   // statement completion unknown
	"42P05": sqlstore.ErrUnavailable, // a prepared statement of another client: another session has none
	"44":    nil,                     // a view's check option
	"53":    sqlstore.ErrUnavailable, // too many connections, out of memory
	"53100": sqlstore.ErrFull,        // disk full
	"53400": sqlstore.ErrFull,        // a configured limit
	"55":    sqlstore.ErrUnavailable, // not in the required state: a database that does not accept connections now
	"55006": sqlstore.ErrBusy,        // object in use
	"55P03": sqlstore.ErrBusy,        // lock timeout
	"57":    sqlstore.ErrUnavailable, // shutdown, crash, not yet up
	"57014": sqlstore.ErrBusy,        // statement timeout
	"58":    sqlstore.ErrUnavailable, // an error of the system, I/O among it
	"72":    sqlstore.ErrBusy,        // snapshot too old
	"F0":    sqlstore.ErrUnavailable, // the server's configuration or lock file
	"XX001": damaged,
	"XX002": damaged, // an index
}

// sizes are the sources of PostgreSQL that refuse a value by 54000: a key that no index takes, a row, a text or an array that
// is too large. The code alone is ambiguous.
var sizes = []string{"indextuple.c", "nbtutils.c", "nbtdedup.c", "hio.c", "heaptuple.c", "stringinfo.c", "mcxt.c", "arrayfuncs.c", "arrayutils.c", "varlena.c"}

// growing are the functions of PostgreSQL that make the file of a table larger. Only a full disk has a code of its own
// there (53100): a quota that is used up and, since release 16, a limit of the size of files are internal errors.
var growing = []string{"mdextend", "mdzeroextend"}

// kindOf returns the store error that an answer of PostgreSQL is.
func kindOf(pg *pgconn.PgError) error {
	switch {
	case pg.Code == "54000" && (pg.TableName != "" || slices.Contains(sizes, filepath.Base(pg.File))):
		return sqlstore.ErrTooLarge // else a limit of the database, as its stop against wraparound
	case pg.Code == "XX000" && filepath.Base(pg.File) == "md.c" && slices.Contains(growing, pg.Routine):
		return sqlstore.ErrFull
	case pg.Code == "0A000" && pg.Routine == "RevalidateCachedQuery":
		return sqlstore.ErrBusy // the table was changed; the statement is prepared again
	}
	if kind, ok := byCode[pg.Code]; ok {
		return kind
	}
	if len(pg.Code) == 5 {
		if kind, ok := byCode[pg.Code[:2]]; ok {
			return kind
		}
	}
	return sqlstore.ErrRefused
}

// errSilent is the cause of a context that ended because no answer came.
var errSilent = errors.New("no answer in time")

// translate is the function of that name, for a call made under ctx. It closes the pool's other
// connections if the error implies that they share its fate.
func (d *Driver) translate(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) == errSilent {
		err = fmt.Errorf("%w: %w: %w", sqlstore.ErrUnavailable, errSilent, err)
	} else {
		err = translate(err)
	}
	if errors.Is(err, sqlstore.ErrUnavailable) {
		d.closeConnections(err)
	}
	return err
}

// closeConnections closes all connections after an error of the network, of a server that shuts down, or of one that
// no longer accepts writes: new connections find the server that does. It does so at most once a second, and
// not after a failed attempt to connect, because that would close new connections as soon as they are made,
// again and again.
func (d *Driver) closeConnections(err error) {
	if isNoServer(err) {
		d.hosts.invalidate()
		return
	}
	if errors.Is(err, errSilent) && !d.hosts.silent() {
		return
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code != "25006" && pg.Code != "42P05" && !strings.HasPrefix(pg.Code, "26") && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08") {
		return
	}
	now, last := time.Now().UnixNano(), d.reset.Load()
	if now-last > int64(time.Second) && d.reset.CompareAndSwap(last, now) {
		d.hosts.invalidate()
		d.pool.Reset()
	}
}

// translate wraps the error of the database or the network in a store error.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if isNoServer(err) { // whatever prevented it
		return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, redact(err))
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := kindOf(pg); kind != nil {
			return fmt.Errorf("%w: %w", kind, err)
		}
		return err
	}
	if errors.Is(err, puddle.ErrClosedPool) {
		return fmt.Errorf("%w: %w", sqlstore.ErrClosed, err)
	}
	var network net.Error
	switch {
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

// refused reports whether the server itself ended a statement, so that the rest of the
// transaction, COMMIT among it, was not done. Anything worse leaves that open.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && pg.Code != "40003"
}

// fenced reports whether qFence ended the transaction.
func fenced(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22012"
}

// redact hides the connection string that parse errors quote, and keeps the reason
// if that cannot contain a part of it.
func redact(err error) error {
	var quoting *pgconn.ParseConfigError
	if !errors.As(err, &quoting) {
		return err
	}
	const general = "the connection string or a PG* variable is not valid"
	if inner := quoting.Unwrap(); inner != nil {
		if file, ok := errors.AsType[*fs.PathError](inner); ok {
			return fmt.Errorf("%s: %w", general, file)
		}
	}
	// The name of the setting follows the quoted string; if the string as a whole cannot be parsed, its parts
	// may be anything.
	text := err.Error()
	if i := strings.LastIndexByte(text, '`'); i >= 0 {
		if reason := strings.TrimPrefix(text[i+1:], ": "); reason != "" && !strings.HasPrefix(reason, "failed to parse as") {
			return fmt.Errorf("%s: %s", general, reason)
		}
	}
	return errors.New(general)
}
