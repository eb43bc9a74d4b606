//go:build unix

package traffic

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestBehind: an aggregated server finds each fault in the headers of a request, and none in those of a right one.
func TestBehind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		header http.Header
		wrong  string
	}{
		"the user":                  {facts + "/ann", http.Header{"X-Remote-User": {"ann"}, "X-Remote-Group": {"system:authenticated"}}, ""},
		"an administrator":          {facts + "/admin", http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, ""},
		"another user":              {facts + "/ann", http.Header{"X-Remote-User": {"bob"}}, `it names the users ["bob"]`},
		"a user who claims another": {facts + "/ann", http.Header{"X-Remote-User": {"ann", "admin"}}, `it names the users ["ann" "admin"]`},
		"no user":                   {facts + "/ann", http.Header{}, `it names the users []`},
		"a claimed group":           {facts + "/ann", http.Header{"X-Remote-User": {"ann"}, "X-Remote-Group": {"system:masters", "system:authenticated"}}, "it has what the client claims of itself"},
		"a claimed extra":           {facts + "/ann", http.Header{"X-Remote-User": {"ann"}, "X-Remote-Extra-Scopes": {"all"}}, "it has what the client claims of itself"},
		"a token":                   {facts + "/ann", http.Header{"X-Remote-User": {"ann"}, "Authorization": {"Bearer t"}}, "it has the credentials of the client"},
		"an impersonation":          {facts + "/ann", http.Header{"X-Remote-User": {"ann"}, "Impersonate-User": {"ann"}}, "it has the credentials of the client"},
	} {
		b := &Behind{rec: history.NewRecorder()}
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Header = c.header
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		checks := b.rec.End().Checks
		if w.Code != http.StatusOK || len(checks) != 1 || checks[0].Wrong != c.wrong || checks[0].Property != "rights" {
			t.Errorf("%s: %d, %v, want %q", name, w.Code, checks, c.wrong)
		}
	}
	b := &Behind{rec: history.NewRecorder()}
	for path, want := range map[string]int{behindVersion: http.StatusOK, "/openapi/v2": http.StatusNotFound} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || len(b.rec.End().Checks) != 0 {
			t.Errorf("%s is answered with %d, want %d", path, w.Code, want)
		}
	}
}
