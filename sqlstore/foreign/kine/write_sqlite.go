package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/rowlock/rowlock/sqlstore/archive"
)

// besideSQLite are the suffixes of the files that SQLite keeps next to a database.
var besideSQLite = []string{"-wal", "-shm", "-journal"}

// CreateSQLite begins a SQLite file of kine, which must not exist. It uses a write-ahead log, as kine itself
// does: a server that reads does not wait for one that writes, whatever kine's flags. There is no log next to
// it.
func CreateSQLite(ctx context.Context, path string) (*Sink, error) {
	// The log of another file would be taken for that of this one.
	for _, end := range append([]string{""}, besideSQLite...) {
		if _, err := os.Lstat(path + end); !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(err, fmt.Errorf("%s exists: an export goes into a new file", path+end))
		}
	}
	part := path + ".gathered"
	if err := removeSQLite(part); err != nil {
		return nil, err
	}
	// The library would make it readable for all users, and it will contain Secrets.
	own, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = own.Close()
	}
	if err != nil {
		return nil, err
	}
	// A temporary file of this process: only the file that is made from it must reach the disk.
	how := url.Values{"_pragma": {"journal_mode(off)", "synchronous(off)", "cache_size(-32768)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: absolute(part), RawQuery: how.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	w := writing{describe: describeSQLite(path), table: qSQLiteTable, schema: sqliteSchema, insert: qInsert}
	w.cleanup = func() error { return removeSQLite(part) }
	w.done = func() error {
		if err := logged(ctx, db); err != nil {
			return err
		}
		return archive.WriteFile(path, func(out io.Writer) error {
			in, err := os.Open(part)
			if err != nil {
				return err
			}
			defer in.Close()
			_, err = io.Copy(out, reader{ctx, in})
			return err
		})
	}
	return create(ctx, db, w)
}

// logged makes a database one with a write-ahead log, and closes it, which takes the log
// into the file and away.
func logged(ctx context.Context, db *sql.DB) error {
	var mode string
	err := db.QueryRowContext(ctx, qSQLiteLog).Scan(&mode)
	if err == nil && mode != "wal" {
		err = fmt.Errorf("it stays in journal mode %q", mode)
	}
	return errors.Join(err, db.Close())
}

// removeSQLite removes a SQLite file, if there is one, and the files next to it.
func removeSQLite(path string) error {
	var errs []error
	for _, end := range append([]string{""}, besideSQLite...) {
		if err := os.Remove(path + end); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
