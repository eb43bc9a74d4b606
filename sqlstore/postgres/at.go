package postgres

import (
	"context"

	"github.com/rowlock/rowlock/sqlstore"
)

// At opens a database for a program that embeds a control plane, and brings its schema up
// to date. url is postgres://USER@HOST/DATABASE.
func At(url string) func(context.Context) (sqlstore.Driver, error) {
	return func(ctx context.Context) (sqlstore.Driver, error) { return Open(ctx, url, Config{}) }
}
