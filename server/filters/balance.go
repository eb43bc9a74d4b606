package filters

import (
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/rowlock/rowlock/server/request"
)

// Goaway ends the connection of an HTTP/2 request with a probability, after the running requests, so that clients spread over
// servers again. It returns nil if the probability is 0.
func Goaway(chance float64) Filter {
	if chance <= 0 {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 && rand.Float64() < chance {
				w.Header().Set("Connection", "close")
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Starting holds requests until started is closed. Health checks do not wait: they go to health directly, without
// authentication, which does not work yet.
func Starting(started <-chan struct{}, health http.Handler, serves func(path string) bool) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-started:
				next.ServeHTTP(w, r)
				return
			default:
			}
			if serves(r.URL.Path) {
				health.ServeHTTP(w, r)
				return
			}
			select {
			case <-started:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
				w.Header().Set("Retry-After", "1")
				http.Error(w, "The server is starting, please try again later.", http.StatusServiceUnavailable)
			}
		})
	}
}

// Rewound refuses requests while memory has objects that the database lacks. Health checks and metrics go on.
func Rewound(now func() bool, serves func(path string) bool, refuse http.HandlerFunc) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if now() && !serves(r.URL.Path) {
				refuse(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Draining refuses requests once leaving is closed, and makes clients connect again, to another server. Health checks and
// metrics go on.
func Draining(leaving <-chan struct{}) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-leaving:
			default:
				next.ServeHTTP(w, r)
				return
			}
			for _, prefix := range []string{"/readyz", "/livez", "/healthz", "/metrics"} {
				if strings.HasPrefix(r.URL.Path, prefix) {
					next.ServeHTTP(w, r)
					return
				}
			}
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "5")
			http.Error(w, "The apiserver is shutting down, please try again later.", http.StatusTooManyRequests)
		})
	}
}

// Counted counts the requests that run, without long-running ones.
func Counted(change func(by int)) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if LongRunning(request.From(r.Context()).Info) {
				next.ServeHTTP(w, r)
				return
			}
			change(1)
			defer change(-1)
			next.ServeHTTP(w, r)
		})
	}
}
