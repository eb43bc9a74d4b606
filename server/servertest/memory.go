package servertest

import (
	"net/http"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
)

// InMemory returns a handler for the contents of a cache, without a server around it. There is no store: reads
// must name resource version 0, or one that the cache has reached.
func InMemory(catalogue *kinds.Catalogue, c *cache.Cache) http.Handler {
	stored := objects.New(catalogue, nil, c)
	shown := &answers.Answers{Items: stored}
	return Permitted(&verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown}})
}

// Permitted does the work of the filters before a request reaches a handler of the verbs, for a user with all
// permissions.
func Permitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := request.Parse(r.Method, r.URL)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		scope := request.NewScope(w.Header(), time.Now())
		scope.Info, scope.User = info, &authx.Identity{Name: "tester"}
		scope.Permit, _, _ = permits.Authorize(r.Context(), authx.AlwaysAllow{}, filters.Attributes(scope))
		next.ServeHTTP(w, r.WithContext(request.With(r.Context(), scope)))
	})
}
