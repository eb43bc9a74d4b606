package verbs_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// site is a server on SQLite.
type site struct {
	*verbs.Handler
	Store *sqlstore.Store
	Cache *cache.Cache
	URL   string
}

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
	s := servertest.Start(t, servertest.Plain(nil), servertest.On(driver, cfg))
	return &site{Handler: s.Verbs, Store: s.Store, Cache: s.Cache, URL: s.WithoutTLS()}
}

// inMemory is a handler of what a cache has. Reads must name version 0: there is no store.
func inMemory(catalogue *kinds.Catalogue, c *cache.Cache) http.Handler {
	stored := objects.New(catalogue, nil, c)
	shown := &answers.Answers{Items: stored}
	return scoped(&verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown}})
}

// forget gives the handler a cache that knows nothing of the past.
func (s *site) forget(t testing.TB) {
	t.Helper()
	c := cache.New(s.Catalogue)
	if _, err := c.Load(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	stored := objects.New(s.Catalogue, s.Store, c)
	s.Cache, s.Objects, s.Answers.Items, s.Watches.Objects = c, stored, stored, stored
}

// compacted waits until the floor has reached a revision.
func (s *site) compacted(t testing.TB, revision int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); s.Store.Floor() < revision; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the floor stays at %d", s.Store.Floor())
		}
	}
}

// allow does what the last filter does for who may do everything.
func allow(ctx context.Context, s *request.Scope) {
	s.Permit, _, _ = permits.Ask(ctx, authx.AlwaysAllow{}, filters.Attributes(s))
}

// scoped does what the filters do before a request meets the handler.
func scoped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := request.Parse(r.Method, r.URL)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		scope := request.NewScope(w.Header(), time.Now())
		scope.Info, scope.User = info, &authx.Identity{Name: "tester"}
		allow(r.Context(), scope)
		next.ServeHTTP(w, r.WithContext(request.With(r.Context(), scope)))
	})
}
