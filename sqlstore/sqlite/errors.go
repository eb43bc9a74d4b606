package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
)

// translate turns an SQLite error into one of the contract, by result code.
func translate(err error) error {
	code, ok := codeOf(err)
	if !ok {
		return err
	}
	if kind := kindOf(code); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// kindOf returns the store error of a result code, by two questions: whether the same may succeed when it is tried again, and
// whether all writes share the fate. nil is about one value alone.
func kindOf(code int) error {
	switch code {
	case sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
		return errDamaged
	case sqlite3.SQLITE_READONLY_DBMOVED:
		return sqlstore.ErrGone
	case sqlite3.SQLITE_CONSTRAINT_TRIGGER, // an administrator's, as there is none of ours that refuses
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID, sqlite3.SQLITE_CONSTRAINT_UNIQUE: // the counter has gone back
		return sqlstore.ErrRefused
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_SCHEMA:
		return sqlstore.ErrBusy
	case sqlite3.SQLITE_FULL:
		return sqlstore.ErrFull
	case sqlite3.SQLITE_READONLY:
		return sqlstore.ErrReadOnly
	case sqlite3.SQLITE_TOOBIG:
		return sqlstore.ErrTooLarge
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return errDamaged
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_ABORT, sqlite3.SQLITE_PROTOCOL:
		return sqlstore.ErrUnavailable
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH:
		return nil
	}
	return sqlstore.ErrRefused // a table that was renamed, a missing right
}

// errDamaged reports that SQLite found its file damaged.
var errDamaged = &sqlstore.CorruptError{Reason: "the database file is damaged"}

// isInterrupt reports whether a query ended with its context.
func isInterrupt(err error) bool { return hasCode(err, sqlite3.SQLITE_INTERRUPT) }

// hasCode compares the primary result code.
func hasCode(err error, code int) bool {
	has, ok := codeOf(err)
	return ok && has&0xff == code
}

// isCode compares the whole result code.
func isCode(err error, code int) bool {
	has, ok := codeOf(err)
	return ok && has == code
}

// codeOf returns SQLite's error code.
func codeOf(err error) (int, bool) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code(), true
	}
	return 0, false
}

// isIdle reports whether a ROLLBACK found no transaction: SQLite had ended it already.
func isIdle(err error) bool { return hasCode(err, sqlite3.SQLITE_ERROR) }
