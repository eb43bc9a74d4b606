package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// opening says what opening a database may do to it.
type opening int

const (
	bringUp opening = iota // create it, or bring its schema up to date, as needed
	asItIs                 // it must be there, with a schema that this binary knows
)

// opener opens the database that a --store URL names; rest is what follows the scheme.
type opener func(ctx context.Context, url, rest string, how opening) (sqlstore.Driver, error)

// drivers are all stores there are, by URL scheme.
var drivers = map[string]opener{
	"sqlite":     openSQLite,
	"postgres":   openPostgres,
	"postgresql": openPostgres,
}

func openSQLite(ctx context.Context, _, rest string, how opening) (sqlstore.Driver, error) {
	path := strings.TrimPrefix(rest, "//")
	if how == asItIs {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no database %s", path)
		}
	}
	return sqlite.Open(ctx, path, sqlite.Config{NoMigrate: how == asItIs})
}

func openPostgres(ctx context.Context, url, _ string, how opening) (sqlstore.Driver, error) {
	return postgres.Open(ctx, url, postgres.Config{NoMigrate: how == asItIs})
}

// openStore opens --store.
func openStore(ctx context.Context, url string, how opening) (sqlstore.Driver, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	open := drivers[scheme]
	if !ok || open == nil {
		return nil, fmt.Errorf("--store: %q names no known store: want sqlite:FILE or postgres://USER@HOST/DATABASE", scheme)
	}
	d, err := open(ctx, url, rest, how)
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return d, nil
}

// publicURL is a store's URL without what must not be seen.
func publicURL(text string) string {
	scheme, _, _ := strings.Cut(text, ":")
	if scheme == "sqlite" {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return scheme + ":..."
	}
	u.RawQuery = ""
	return u.Redacted()
}
