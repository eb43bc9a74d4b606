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

func kindOf(code int) error {
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sqlstore.ErrBusy
	case sqlite3.SQLITE_FULL:
		return sqlstore.ErrFull
	case sqlite3.SQLITE_READONLY:
		return sqlstore.ErrReadOnly
	case sqlite3.SQLITE_TOOBIG:
		return sqlstore.ErrTooLarge
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &sqlstore.CorruptError{Reason: "the database file is damaged"}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL:
		return sqlstore.ErrUnavailable
	}
	return nil
}

// isUnique says that a statement met the unique index of live keys.
func isUnique(err error) bool {
	return isCode(err, sqlite3.SQLITE_CONSTRAINT_UNIQUE)
}

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

// codeOf is what SQLite answered.
func codeOf(err error) (int, bool) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code(), true
	}
	if e, ok := errors.AsType[*resultError](err); ok {
		return e.code, true
	}
	return 0, false
}

// resultError is an answer to a call that did not go by way of SQLite's Go driver.
type resultError struct {
	code int
	text string
}

func (e *resultError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// isIdle says that a ROLLBACK found no transaction: SQLite had ended it already.
func isIdle(err error) bool { return hasCode(err, sqlite3.SQLITE_ERROR) }
