package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCustomObjectOfAnotherKind sends custom objects with another kind.
func TestCustomObjectOfAnotherKind(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	defined(t, a, definition("kinds.example.com", "pens", "Pen", "v1"))
	const pens = "/apis/kinds.example.com/v1/namespaces/default/pens"
	want(t, a, http.StatusCreated, http.MethodPost, pens, "application/json", `{"apiVersion":"kinds.example.com/v1","kind":"Pen","metadata":{"name":"red"}}`)
	for _, c := range []struct {
		name, method, path, typ, body string
		code                          int
		text                          string
	}{
		{"made", http.MethodPost, pens, "application/json", `{"apiVersion":"kinds.example.com/v1","kind":"Ink","metadata":{"name":"blue"}}`, http.StatusUnprocessableEntity,
			`Ink.kinds.example.com \"blue\" is invalid: kind: Invalid value: \"Ink\": must be Pen`},
		{"patched", http.MethodPatch, pens + "/red", "application/merge-patch+json", `{"kind":"Ink"}`, http.StatusUnprocessableEntity,
			`Ink.kinds.example.com \"red\" is invalid: kind: Invalid value: \"Ink\": must be Pen`},
		{"of another version", http.MethodPost, pens, "application/json", `{"apiVersion":"kinds.example.com/v2","kind":"Pen","metadata":{"name":"blue"}}`, http.StatusBadRequest,
			`the API version in the data (kinds.example.com/v2) does not match the expected API version (kinds.example.com/v1)`},
	} {
		code, answer, err := a.do(t.Context(), c.method, c.path, c.typ, c.body)
		if err != nil || code != c.code || !strings.Contains(string(answer), c.text) {
			t.Errorf("%s: %d %s %v", c.name, code, answer, err)
		}
	}
}
