package filters

import (
	"net/http"
	"slices"

	"github.com/rowlock/rowlock/server/request"
)

// Around puts filters of others around a handler, the first outermost; nil if there are none.
// They take the return of the handler for the end of the answer, so the handlers of watches stay.
func Around(list []Filter) Filter {
	if len(list) == 0 {
		return nil
	}
	return func(next http.Handler) http.Handler {
		h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).MustStay()
			next.ServeHTTP(w, r)
		}))
		for _, filter := range slices.Backward(list) {
			h = filter(h)
		}
		return h
	}
}
