package e2e

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestOwnersOfParts writes through endpoints whose ownership is not what it is
// elsewhere.
func TestOwnersOfParts(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	t.Run("ephemeral containers", func(t *testing.T) { ownEphemeral(t, a) })
	t.Run("a definition's status", func(t *testing.T) { ownDefinition(t, a) })
	t.Run("events of two groups", func(t *testing.T) { ownEvent(t, a) })
}

// owners lists the entries of an object: manager, version, subresource, fields.
func owners(t *testing.T, body []byte) (out []string) {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	unmarshal(t, body, &obj)
	for _, e := range obj.ManagedFields {
		out = append(out, strings.Join([]string{e.Manager, e.APIVersion, e.Subresource, string(e.FieldsV1.Raw)}, " "))
	}
	return out
}

func ownEphemeral(t *testing.T, a *api) {
	const pods = "/api/v1/namespaces/default/pods"
	before := owners(t, want(t, a, http.StatusCreated, http.MethodPost, pods+"?fieldManager=maker", "application/json",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`))
	want(t, a, http.StatusOK, http.MethodPatch, pods+"/p/ephemeralcontainers?fieldManager=m", "application/strategic-merge-patch+json",
		`{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}`)
	answer := want(t, a, http.StatusOK, http.MethodPatch, pods+"/p/ephemeralcontainers?fieldManager=n", applyType,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`)
	if !strings.Contains(string(answer), `"name":"d"`) || !strings.Contains(string(answer), `"name":"e"`) {
		t.Errorf("two ephemeral containers were added: %s", answer)
	}
	if got := owners(t, answer); strings.Join(got, "\n") != strings.Join(before, "\n") {
		t.Errorf("owners are %q, were %q", got, before)
	}
}

func ownDefinition(t *testing.T, a *api) {
	defined(t, a, definition("owned.example.com", "pens", "Pen", "v1"))
	const pens = definitionsPath + "/pens.owned.example.com"
	answer := want(t, a, http.StatusOK, http.MethodPatch, pens+"/status?fieldManager=m", applyType,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"pens.owned.example.com","labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"group":"other.example.com"}}`)
	for _, text := range []string{`"labels":{"a":"b"}`, `"annotations":{"c":"d"}`, `"group":"owned.example.com"`} {
		if !strings.Contains(string(answer), text) {
			t.Errorf("no %s in %s", text, answer)
		}
	}
	for _, o := range owners(t, answer) {
		if strings.Contains(o, "f:labels") {
			t.Errorf("labels have an owner: %s", o)
		}
	}
	answer = want(t, a, http.StatusOK, http.MethodPatch, pens+"?fieldManager=n", "application/merge-patch+json", `{"metadata":{"labels":{"e":"f"}}}`)
	if got := owners(t, answer); !strings.Contains(strings.Join(got, "\n"), `n apiextensions.k8s.io/v1  {"f:metadata":{"f:labels":{"f:e":{}}}}`) {
		t.Errorf("who adds a label to those that are there owns it alone: %q", got)
	}
	want(t, a, http.StatusOK, http.MethodPatch, pens+"/status", "application/merge-patch+json", `{"metadata":{"annotations":null}}`)
	if answer := string(want(t, a, http.StatusOK, http.MethodGet, pens, "", "")); strings.Contains(answer, `"annotations"`) {
		t.Errorf("annotations that were taken away: %s", answer)
	}
}

func ownEvent(t *testing.T, a *api) {
	want(t, a, http.StatusCreated, http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events?fieldManager=maker", "application/json",
		`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":"2024-01-01T00:00:00.000000Z","action":"a","reason":"r","note":"n","type":"Normal","reportingController":"x.y/z","reportingInstance":"i","regarding":{"kind":"Pod","namespace":"default","name":"p"}}`)
	const event = "/api/v1/namespaces/default/events/e"
	const head = `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},`
	// As on a stock server, a write in one group forgets the owners of fields of the other.
	got := owners(t, want(t, a, http.StatusOK, http.MethodPatch, event+"?fieldManager=m", applyType, head+`"message":"other"}`))
	if len(got) != 1 || !strings.Contains(got[0], `m v1  {"f:message":{}}`) {
		t.Errorf("owners after an apply in the other group: %q", got)
	}
}
