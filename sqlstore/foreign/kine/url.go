package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// ErrScheme is returned for a URL that names no database of a kind that kine uses.
var ErrScheme = errors.New("want sqlite:FILE, postgres://USER@HOST/DATABASE or mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE")

// server is a database server that kine uses.
type server struct {
	open func(url string) (db *sql.DB, describe string, err error) // it makes no connection
	live string                                                    // see dialect
	sink writing
}

// serverOf returns the server of a URL; path is that of a SQLite file instead.
func serverOf(url string) (s server, path string, err error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		return s, strings.TrimPrefix(rest, "//"), nil
	case "postgres", "postgresql": // as libpq reads it: variables and password files count
		return server{openPostgres, qPostgresLive, writing{table: qPostgresTable, schema: postgresSchema, insert: qPostgresInsert, after: qPostgresSequence}}, "", nil
	case "mysql": // a table exists once it is made: it is empty until Commit, and Abort drops it
		return server{openMySQL, qMySQLLive, writing{table: qMySQLTable, schema: mysqlSchema, insert: qInsert, drop: qMySQLDrop, name: mysqlName, taken: isTaken}}, "", nil
	}
	return s, "", ErrScheme
}

// Describe names the database of a URL for people, without credentials. It does not connect.
func Describe(url string) (string, error) {
	s, path, err := serverOf(url)
	switch {
	case err != nil:
		return "", err
	case s.open == nil:
		return describeSQLite(path), nil
	}
	db, describe, err := s.open(url)
	if err == nil {
		err = db.Close()
	}
	return describe, err
}

// Open reads the database of kine that a URL names.
func Open(ctx context.Context, url string) (*Source, error) {
	s, path, err := serverOf(url)
	switch {
	case err != nil:
		return nil, err
	case s.open == nil:
		return OpenSQLite(ctx, path)
	}
	db, describe, err := s.open(url)
	if err != nil {
		return nil, err
	}
	if err := isKine(ctx, db, s.sink.table, "it is none of kine"); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", describe, err), db.Close())
	}
	tx := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return begin(ctx, db, dialect{describe: describe, head: qHead, live: s.live, limit: int64(foreign.MaxValue), tx: tx}, nil)
}

// Create begins to fill the database of kine that a URL names. It must have no rows of
// kine; a SQLite file must not exist.
func Create(ctx context.Context, url string) (*Sink, error) {
	s, path, err := serverOf(url)
	switch {
	case err != nil:
		return nil, err
	case s.open == nil:
		return CreateSQLite(ctx, path)
	}
	db, describe, err := s.open(url)
	if err != nil {
		return nil, err
	}
	s.sink.describe = describe
	return create(ctx, db, s.sink)
}
