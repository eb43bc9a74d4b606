package tokenverbs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestOwnersOfBodies: the sender of a body owns its fields, of lists with repeated items too, and a body whose owners cannot be
// computed has none.
func TestOwnersOfBodies(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	s.Must("POST", "/api/v1/namespaces/a/serviceaccounts", `{"metadata":{"name":"app"}}`)
	const tokens, reviews = "/api/v1/namespaces/a/serviceaccounts/app/token", "/apis/authentication.k8s.io/v1/tokenreviews"
	const twice = `"metadata":{"finalizers":["x/y","x/y"]}`
	managed := strings.Repeat(`,{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}`, 2000)[1:]
	for _, c := range []struct{ path, body, want string }{
		{tokens, `{` + twice + `,"spec":{"audiences":["x"]}}`, `"f:finalizers":{".":{},"v:\"x/y\"":{}}`},
		{reviews, `{` + twice + `,"spec":{"token":"x"}}`, `"f:finalizers":{".":{},"v:\"x/y\"":{}}`},
		{reviews, `{"metadata":{"managedFields":[` + managed + `]},"spec":{"token":"x"}}`, `"metadata":{"creationTimestamp":null},`},
	} {
		if w := s.Do("POST", c.path, c.body); w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %.200s: %d %.500s", c.path, c.body, w.Code, w.Body)
		}
	}
}
