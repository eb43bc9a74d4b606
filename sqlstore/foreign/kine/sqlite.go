package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// sqliteMagic begins every SQLite file. A few bytes later it states which readers it needs.
const (
	sqliteMagic   = "SQLite format 3\x00"
	sqliteReaders = len(sqliteMagic) + 3
	readersOfLogs = 2 // those that know of a write-ahead log
)

// maxHeldBySQLite bounds each text and blob that SQLite makes in memory, in bytes: more than the
// longest value.
const maxHeldBySQLite = foreign.MaxValue + 1<<20

// IsSQLite reports whether a file begins as a SQLite database does.
func IsSQLite(path string) bool {
	return headOf(path) != nil
}

// headOf returns the beginning of a SQLite file; nil: no SQLite file.
func headOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, sqliteReaders+1)
	if _, err = io.ReadFull(f, head); err != nil || string(head[:len(sqliteMagic)]) != sqliteMagic {
		return nil
	}
	return head
}

// OpenSQLite reads a SQLite file of kine; k3s keeps it as server/db/state.db. The file may be in use: then
// its present state is read. It may have been left with its write-ahead log: then both are copied to the
// folder for temporary files and read there, so that nothing is written next to the original. With a rollback
// journal instead of that log, an unfinished transaction is an error. Errors name the file, and describe it
// if it is not a database of kine.
func OpenSQLite(ctx context.Context, path string) (*Source, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	head := headOf(path)
	if head == nil {
		return nil, fmt.Errorf("%s is not a SQLite database", path)
	}
	used, cleanup := path, func() error { return nil }
	how := url.Values{"mode": {"ro"}}
	switch log, index := size(path+"-wal"), size(path+"-shm"); {
	case head[sqliteReaders] < readersOfLogs: // a rollback journal: its lock shows whether it is in use, and it may have to be undone first
	case index >= 0: // a process has it open, or had when the machine went down
	case log > 0: // left behind: reading it in place would make an index next to it
		var err error
		if used, cleanup, err = copied(ctx, path); err != nil {
			return nil, err
		}
		how = url.Values{}
	default: // no other process has it open: no lock and no index is needed
		how.Set("immutable", "1")
	}
	db, err := sql.Open("sqlite", dataSource(used, how))
	if err != nil {
		return nil, errors.Join(err, cleanup())
	}
	db.SetMaxOpenConns(1)
	d := dialect{describe: describeSQLite(path), head: qHead, live: qSQLiteLive, limit: int64(foreign.MaxValue)}
	err = bounded(ctx, db)
	if err == nil {
		err = isKine(ctx, db, qSQLiteTable, path+" is a SQLite database, and not one of kine")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, err), db.Close(), cleanup())
	}
	return begin(ctx, db, d, cleanup)
}

// bounded keeps SQLite from reading longer texts and blobs than there should be, on the
// one connection of a database: it would read up to a gigabyte before a query could refuse it.
func bounded(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	_, err = sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxHeldBySQLite)
	return errors.Join(err, conn.Close())
}

func describeSQLite(path string) string { return "kine SQLite file " + path }

func dataSource(path string, how url.Values) string {
	how.Add("_pragma", "query_only(1)")
	how.Add("_pragma", "trusted_schema(0)") // computed columns of the file are not evaluated
	how.Add("_pragma", "cell_size_check(1)")
	how.Add("_pragma", "busy_timeout(10000)")
	how.Add("_pragma", "cache_size(-16384)")
	return (&url.URL{Scheme: "file", Path: absolute(path), RawQuery: how.Encode()}).String()
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	return nil
}

// size returns the size of a file, or -1 if there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// copied copies a database with its write-ahead log; cleanup removes the copy. It fails if the database is
// written at the same time, because the two would not match.
func copied(ctx context.Context, path string) (string, func() error, error) {
	dir, err := os.MkdirTemp("", "rowlock-kine-")
	if err != nil {
		return "", nil, err
	}
	cleanup := func() error { return os.RemoveAll(dir) }
	before, err := stamps(path)
	target := filepath.Join(dir, "state.db")
	for _, end := range []string{"", "-wal"} {
		if err == nil {
			err = copyFile(ctx, path+end, target+end)
		}
	}
	if err == nil {
		var after [2]stamp
		if after, err = stamps(path); err == nil && after != before {
			err = errors.New("it is written to while it is copied: stop what uses it, or try again")
		}
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("copying %s: %w", path, err), cleanup())
	}
	return target, cleanup, nil
}

// stamp changes when a file is written to.
type stamp struct {
	size int64
	at   time.Time
}

func stamps(path string) (list [2]stamp, err error) {
	for i, end := range []string{"", "-wal"} {
		info, err := os.Stat(path + end)
		if err != nil {
			return list, err
		}
		list[i] = stamp{info.Size(), info.ModTime()}
	}
	if _, err := os.Stat(path + "-shm"); !errors.Is(err, fs.ErrNotExist) {
		return list, errors.New("it was opened while it is copied: try again")
	}
	return list, nil
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, reader{ctx, in})
	return errors.Join(err, out.Close())
}

// reader ends with its context.
type reader struct {
	ctx context.Context //nolint:containedctx // of the one copy that it is made for
	in  io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}
