package verbs_test

import (
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// site is a server whose reads are tested.
type site struct{ *servertest.Site }

// newSite returns a server on SQLite, for tests of reads.
func newSite(t testing.TB) *site { return newSiteWith(t, sqlstore.Config{}) }

func newSiteWith(t testing.TB, cfg sqlstore.Config) *site {
	t.Helper()
	driver, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{servertest.NewSite(t, driver, cfg)}
}
