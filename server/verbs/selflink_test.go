package verbs_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestSelfLinks: only the dry run of an update answers with the selfLink that the client sent; none is stored.
func TestSelfLinks(t *testing.T) {
	s := servertest.Start(t)
	const object, list = "/api/v1/namespaces/default/configmaps/c", "/api/v1/namespaces/default/configmaps"
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","selfLink":"/x"}}`
	const other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","selfLink":"/x","labels":{"a":"b"}}}`
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	for _, tc := range []struct {
		method, path, body, contentType string
		shown                           bool
	}{
		{"POST", list + "?dryRun=All", body, "application/json", false},
		{"POST", list, body, "application/json", false},
		{"PUT", object + "?dryRun=All", body, "application/json", true},
		{"PUT", object + "?dryRun=All", other, "application/json", true},
		{"PATCH", object + "?dryRun=All", `{"metadata":{"selfLink":"/x"}}`, merge, true},
		{"PATCH", object + "?dryRun=All", `{"metadata":{"labels":{"a":"b"}}}`, merge, false},
		{"PATCH", object + "?dryRun=All&fieldManager=m", body, apply, true},
		{"PUT", object, body, "application/json", false},
		{"PATCH", object, `{"metadata":{"selfLink":"/x","labels":{"a":"c"}}}`, merge, false},
		{"GET", object, "", "application/json", false},
	} {
		got := string(s.Must(tc.method, tc.path, tc.body, "Content-Type", tc.contentType))
		if shown := strings.Contains(got, `"selfLink":"/x"`); shown != tc.shown {
			t.Errorf("%s %s %s: %s", tc.method, tc.path, tc.body, got)
		}
	}
}
