package servertest

import (
	"net/http"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// Site is a server whose reads and watches are tested over HTTP/1.1 without TLS, by a user with all
// permissions.
type Site struct {
	*Server
	Plain string // its URL
}

// NewSite starts a server on a database, without admission plugins, whose requests may take as long as
// a busy machine makes them.
func NewSite(t testing.TB, driver sqlstore.Driver, cfg sqlstore.Config) *Site {
	t.Helper()
	s := Start(t, Plain(nil), On(driver, cfg), patient)
	return &Site{Server: s, Plain: s.WithoutTLS()}
}

// patient is an option: requests may take longer than the usual minute.
func patient(c *server.Config) { c.RequestTimeout = 10 * time.Minute }

// Fetch gets a path.
func (s *Site) Fetch(t testing.TB, path string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	return Fetch(t, s.Plain+path, header...)
}

// Forget gives the handler a cache without past events.
func (s *Site) Forget(t testing.TB) {
	t.Helper()
	h := s.Verbs
	c := cache.New(h.Catalogue)
	if _, err := c.Load(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	stored := objects.New(h.Catalogue, s.Store, c)
	h.Objects, h.Answers.Items, h.Watches.Objects = stored, stored, stored
}

// Compacted waits until the floor has reached a revision.
func (s *Site) Compacted(t testing.TB, revision int64) {
	t.Helper()
	Eventually(t, func() bool { return s.Store.Floor() >= revision })
}
