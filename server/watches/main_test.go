package watches_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server whose watches are tested.
type site struct {
	*servertest.Server
	plain string // the URL without TLS
}

func newSite(t testing.TB) *site { return newSiteWith(t, sqlstore.Config{}) }

func newSiteWith(t testing.TB, cfg sqlstore.Config) *site {
	t.Helper()
	s := servertest.Start(t, servertest.Plain(nil), servertest.On(storetest.NewMemory(), cfg))
	return &site{Server: s, plain: s.WithoutTLS()}
}

// fetch gets a path.
func (s *site) fetch(t testing.TB, path string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	return servertest.Fetch(t, s.plain+path, header...)
}

// forget gives the handler a cache that knows nothing of the past.
func (s *site) forget(t testing.TB) {
	t.Helper()
	h := s.Verbs
	c := cache.New(h.Catalogue)
	if _, err := c.Load(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	stored := objects.New(h.Catalogue, s.Store, c)
	h.Objects, h.Answers.Items, h.Watches.Objects = stored, stored, stored
}

// compacted waits until the floor has reached a revision.
func (s *site) compacted(t testing.TB, revision int64) {
	t.Helper()
	servertest.Eventually(t, func() bool { return s.Store.Floor() >= revision })
}
