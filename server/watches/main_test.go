package watches_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server whose watches are tested.
type site struct{ *servertest.Site }

func newSite(t testing.TB) *site { return newSiteWith(t, sqlstore.Config{}) }

func newSiteWith(t testing.TB, cfg sqlstore.Config) *site {
	t.Helper()
	return &site{servertest.NewSite(t, storetest.NewShared().Open(), cfg)}
}
