package verbs

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/writes"
)

// allows is an authorizer that allows everything.
type allows struct{ got []*authx.Attributes }

// Authorize implements authx.Authorizer.
func (z *allows) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	z.got = append(z.got, a)
	return authx.Allow, "", nil
}

// TestEverywhere: rights in all namespaces are those that an authorizer grants, and without an authorizer there are none.
func TestEverywhere(t *testing.T) {
	r := &kinds.Resource{}
	r.Plural = "configmaps"
	call := &Call{Request: answers.Request{R: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)}, User: &authx.Identity{Name: "one", Groups: []string{authx.GroupMasters}}}
	asked := &allows{}
	for _, tc := range []struct {
		h    *Handler
		want bool
	}{{&Handler{}, false}, {&Handler{Writes: &writes.Writer{}}, false}, {&Handler{Writes: &writes.Writer{Authorizer: asked}}, true}} {
		if may, err := tc.h.AllNamespaces(call, r, "list", "a"); may != tc.want || err != nil {
			t.Errorf("%+v: %t, %v", tc.h.Writes, may, err)
		}
	}
	if got := asked.got; len(got) != 1 || got[0].User != call.User || got[0].Verb != "list" || got[0].Namespace != "" || got[0].Name != "a" || got[0].Resource != "configmaps" {
		t.Errorf("the authorizer decided about %+v", asked.got)
	}
}
