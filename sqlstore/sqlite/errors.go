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
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	if kind := kindOf(e.Code()); kind != nil {
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
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == code
}

// isCode compares the whole result code.
func isCode(err error, code int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == code
}

// isIdle says that a ROLLBACK found no transaction: SQLite had ended it already.
func isIdle(err error) bool { return hasCode(err, sqlite3.SQLITE_ERROR) }
