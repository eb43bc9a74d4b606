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

func TestRoutes(t *testing.T) {
	s := &Server{Cache: cache.New(nil), cfg: Config{
		Feature: func(string) bool { return false },
		Routes: map[string]Route{"/keys": {"application/jwk-set+json", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("the keys"))
		})}},
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
