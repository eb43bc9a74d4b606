package kine

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// ErrScheme is returned for a URL that names no database of a kind that kine uses.
var ErrScheme = errors.New("want sqlite:FILE, postgres://USER@HOST/DATABASE or mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE")

// Describe is for people the database that a URL names, without credentials. It does not
// connect.
func Describe(url string) (string, error) {
	var db *sql.DB
	var describe string
	var err error
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		return describeSQLite(strings.TrimPrefix(rest, "//")), nil
	case "postgres", "postgresql":
		db, describe, err = openPostgres(url)
	case "mysql":
		db, describe, err = openMySQL(url)
	default:
		return "", ErrScheme
	}
	if err == nil {
		err = db.Close() // it was opened, and no connection made
	}
	return describe, err
}

// Open reads the database of kine that a URL names.
func Open(ctx context.Context, url string) (*Source, error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		return OpenSQLite(ctx, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		return OpenPostgres(ctx, url)
	case "mysql":
		return OpenMySQL(ctx, url)
	}
	return nil, ErrScheme
}

// Create begins to fill the database of kine that a URL names. It must have no rows of
// kine; a SQLite file must not exist.
func Create(ctx context.Context, url string) (*Sink, error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		return CreateSQLite(ctx, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		return CreatePostgres(ctx, url)
	case "mysql":
		return CreateMySQL(ctx, url)
	}
	return nil, ErrScheme
}
