package tokenverbs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestNamelessReferences: where an object refers to another without its name, or by one that cannot
// be one, the answer is that of a read of such a name, and not that there is no such object.
func TestNamelessReferences(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	s.Must("POST", "/api/v1/namespaces/a/serviceaccounts", `{"metadata":{"name":"app"}}`)
	const required, slash = "Name parameter required.", `Name parameter invalid: \"x/y\": may not contain '/'`
	tokens, bindings := "/api/v1/namespaces/a/serviceaccounts/app/token", "/api/v1/namespaces/a/bindings"
	for _, c := range []struct{ path, body, want string }{
		{tokens, `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod"}}}`, required},
		{tokens, `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Node"}}}`, required},
		{tokens, `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret"}}}`, required},
		{tokens, `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"x/y"}}}`, slash},
		{bindings, `{"target":{"kind":"Node","name":"n"}}`, required},
		{bindings, `{"metadata":{"name":"x/y"},"target":{"kind":"Node","name":"n"}}`, slash},
	} {
		if w := s.Do("POST", c.path, c.body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
}
