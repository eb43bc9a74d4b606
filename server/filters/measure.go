package filters

import "net/http"

// Measure calls began as a request arrives, and returned with the result after its handler has returned or panicked. It is the
// filter after Scope.
func Measure[T any](began func(*http.Request) T, returned func(http.ResponseWriter, *http.Request, T)) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer returned(w, r, began(r))
			next.ServeHTTP(w, r)
		})
	}
}
