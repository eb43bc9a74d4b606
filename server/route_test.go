package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/request"
)

// named answers with a text.
func named(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

func TestRoutes(t *testing.T) {
	s := &Server{Cache: cache.New(nil), cfg: Config{
		Feature: func(string) bool { return false },
		Routes:  map[string]Route{"/keys": {"application/jwk-set+json", named("the keys")}},
		Paths:   map[string]http.Handler{"/debug/flags/": named("the flags"), "/debug/flags/v": named("the verbosity"), "/debug/": named("the pages"), "/flagz": named("the values")},
	}}
	for _, tt := range []struct {
		method, path, accept string
		code                 int
		body                 string
	}{
		{"GET", "/keys", "", 200, "the keys"},
		{"GET", "/keys/", "*/*", 200, "the keys"},
		{"GET", "/keys", "application/jwk-set+json;q=0.1", 200, "the keys"},
		{"GET", "/keys", "application/json", 406, `"message":"406: Not Acceptable\n\nAvailable representations: application/jwk-set+json"`},
		{"GET", "/keys", "text/html", 406, `"reason": "NotAcceptable"`},
		{"POST", "/keys", "text/html", 405, `"the server does not allow this method on the requested resource"`},
		{"HEAD", "/keys", "application/json", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/keys/x", "application/json", 404, `"message":"the server could not find the requested resource"`},
		{"GET", "/keysx", "", 404, "404 page not found"},
		{"GET", "/debug/flags/", "", 200, "the flags"},
		{"GET", "/debug/flags/v", "", 200, "the verbosity"},
		{"GET", "/debug/flags/other", "", 200, "the flags"},
		{"GET", "/debug/flags/v/", "", 200, "the flags"},
		{"GET", "/debug/other/" + strings.Repeat("/", 1000), "", 200, "the pages"},
		{"GET", "/debug", "", 404, "404 page not found"},
		{"GET", "/flagz", "", 200, "the values"},
		{"GET", "/flagz/", "", 404, "404 page not found"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		scope := request.NewScope(r.Header, time.Now())
		scope.Info = &request.Info{}
		s.routePath(w, r.WithContext(request.With(r.Context(), scope)))
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s %s (%s): %d %s", tt.method, tt.path, tt.accept, w.Code, w.Body)
		}
	}
}
