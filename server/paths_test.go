package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestPathsWithSlashes: a slash at the end changes nothing about documents and resources; the other pages are not below
// themselves.
func TestPathsWithSlashes(t *testing.T) {
	s := servertest.Start(t)
	for path, want := range map[string]string{
		"/api/":                       `"kind":"APIVersions"`,
		"/api/v1/":                    `"kind":"APIResourceList"`,
		"/apis/":                      `"kind":"APIGroupList"`,
		"/apis/apps/":                 `"kind":"APIGroup"`,
		"/apis/apps/v1/":              `"kind":"APIResourceList"`,
		"/version/":                   `"gitVersion"`,
		"/api/v1/namespaces/":         `"kind":"NamespaceList"`,
		"/api/v1/namespaces/default/": `"kind":"Namespace"`,
		"/index.html":                 `"/apis/apps/v1"`,
		"/healthz/":                   "",
		"/healthz/ping/":              "",
		"/livez/":                     "",
		"/readyz/":                    "",
		"/metrics/":                   "",
		"/metrics/slis/":              "",
		"/openapi/v2/":                "",
		"/index.html/":                "",
	} {
		answer := s.Do("GET", path, "")
		code := http.StatusOK
		if want == "" {
			code, want = http.StatusNotFound, "404 page not found\n"
		}
		if body := strings.ReplaceAll(answer.Body.String(), ": ", ":"); answer.Code != code || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s, want %d %s", path, answer.Code, body, code, want)
		}
	}
}
