package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// padding is a text of a megabyte.
var padding = strings.Repeat("x", 1<<20)

// fill creates a namespace with large objects of a kind.
func fill(s *servertest.Server, namespace, resource, kind string, n int, rest string) {
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+namespace+`"}}`)
	s.Must("POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts", `{"metadata":{"name":"default"}}`)
	for i := range n {
		name := fmt.Sprintf("x%03d", i)
		s.Put(resource, namespace, name, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u%d","annotations":{"a":%q}}%s}`,
			kind, name, namespace, i, padding, rest))
	}
}

// TestFullNamespaces: a write decodes two megabytes of the limits and quotas that hold for it, and is refused if there are more.
func TestFullNamespaces(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle)
	const pod = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	for _, c := range []struct {
		namespace, resource, kind string
		n, code                   int
	}{
		{"ranges", "limitranges", "LimitRange", 1, http.StatusCreated},
		{"many-ranges", "limitranges", "LimitRange", 20, http.StatusRequestEntityTooLarge},
		{"quotas", "resourcequotas", "ResourceQuota", 1, http.StatusCreated},
		{"many-quotas", "resourcequotas", "ResourceQuota", 20, http.StatusRequestEntityTooLarge},
	} {
		fill(s, c.namespace, c.resource, c.kind, c.n, `,"spec":{}`)
		if w := s.Do("POST", "/api/v1/namespaces/"+c.namespace+"/pods", pod); w.Code != c.code {
			t.Errorf("%s: %d %.300s, want %d", c.namespace, w.Code, w.Body, c.code)
		}
	}
}

// TestFullNamespaceUnderStricterStandard: a change of a namespace's standard decodes 32 MiB of its pods, and warns that these are not
// all.
func TestFullNamespaceUnderStricterStandard(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle)
	fill(s, "a", "pods", "Pod", 50, `,"spec":{"containers":[{"name":"c","image":"i"}],"hostNetwork":true}`)
	w := s.Do("PATCH", "/api/v1/namespaces/a", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`, "Content-Type", "application/merge-patch+json")
	warnings := strings.Join(w.Header().Values("Warning"), "\n")
	checked, of := 0, 0
	if at := strings.Index(warnings, "only checked against"); at >= 0 {
		_, _ = fmt.Sscanf(warnings[at:], "only checked against the first %d of %d existing pods", &checked, &of)
	}
	if w.Code != http.StatusOK || checked < 1 || checked > 32 || of != 50 {
		t.Errorf("%d, %d of %d pods were checked: %.500s", w.Code, checked, of, warnings)
	}
}
