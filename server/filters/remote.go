package filters

import (
	"net/http"

	"github.com/rowlock/rowlock/server/request"
)

// Remote marks requests that an aggregated server answers, before the filters that depend on how long the
// request may take. Until the server is ready there are no APIServices.
func Remote(ready func() bool, mark func(*request.Info, http.Header)) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ready() {
				mark(request.From(r.Context()).Info, r.Header)
			}
			next.ServeHTTP(w, r)
		})
	}
}
