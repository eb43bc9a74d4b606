package sqlite

import (
	"context"
	"strings"

	"github.com/rowlock/rowlock/sqlstore"
)

// At opens a file for a program that embeds a control plane, and makes it where it is not
// there. url is sqlite:FILE, or the file alone.
func At(url string) func(context.Context) (sqlstore.Driver, error) {
	return func(ctx context.Context) (sqlstore.Driver, error) {
		return Open(ctx, strings.TrimPrefix(strings.TrimPrefix(url, "sqlite:"), "//"), Config{})
	}
}
