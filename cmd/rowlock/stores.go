package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// opener opens the database that a --store URL names; rest is what follows the scheme.
type opener func(ctx context.Context, url, rest string) (sqlstore.Driver, error)

// drivers are all stores there are, by URL scheme.
var drivers = map[string]opener{
	"sqlite": func(ctx context.Context, _, rest string) (sqlstore.Driver, error) {
		return sqlite.Open(ctx, strings.TrimPrefix(rest, "//"), sqlite.Config{})
	},
	"postgres":   openPostgres,
	"postgresql": openPostgres,
}

func openPostgres(ctx context.Context, url, _ string) (sqlstore.Driver, error) {
	return postgres.Open(ctx, url, postgres.Config{})
}

// openStore opens --store.
func openStore(ctx context.Context, url string) (sqlstore.Driver, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	open := drivers[scheme]
	if !ok || open == nil {
		return nil, fmt.Errorf("--store: %q names no known store: want sqlite:FILE or postgres://USER@HOST/DATABASE", scheme)
	}
	d, err := open(ctx, url, rest)
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
