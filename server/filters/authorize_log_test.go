package filters_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
)

// TestAuthorizeLog: while the authorizer fails, unknown clients do not fill the log.
func TestAuthorizeLog(t *testing.T) {
	var out bytes.Buffer
	down := authorizer(func(*authx.Attributes) (authx.Decision, string, error) {
		return authx.Deny, "", errors.New("the service is down")
	})
	f := filters.Authorize(down, nil, slog.New(slog.NewTextHandler(&out, nil)), fail)
	for range 50 {
		if w := serve(httptest.NewRequest("GET", "/version", nil), ok, as(&authx.Identity{Name: authx.Anonymous}), f); w.Code != 500 {
			t.Fatal(w.Code)
		}
	}
	if n := strings.Count(out.String(), "the service is down"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// TestFailuresLog: lines about failing requests are limited too, however long their paths.
func TestFailuresLog(t *testing.T) {
	var out bytes.Buffer
	f := filters.AccessLog(slog.New(slog.NewTextHandler(&out, nil)), func(string) bool { return false })
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for range 1000 {
		serve(httptest.NewRequest("GET", "/version?"+strings.Repeat("x", 100_000), nil), fails, as(&authx.Identity{Name: authx.Anonymous}), f)
	}
	if n := strings.Count(out.String(), "msg=request"); n == 0 || n > 200 || out.Len() > n*5000 {
		t.Errorf("%d lines, %d bytes", n, out.Len())
	}
}
