package reviews_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
)

// emptying removes from reviews what they are about.
type emptying struct{}

func (emptying) Name() string                        { return "Emptying" }
func (emptying) Handles(op admission.Operation) bool { return op == admission.Create }

func (emptying) Admit(_ context.Context, a *admission.Attributes) error {
	switch review := a.Object.(type) {
	case *authorizationv1.SubjectAccessReview:
		review.Spec = authorizationv1.SubjectAccessReviewSpec{}
	case *authorizationv1.SelfSubjectAccessReview:
		review.Spec = authorizationv1.SelfSubjectAccessReviewSpec{}
	case *authorizationv1.LocalSubjectAccessReview:
		review.Spec.User = ""
	}
	return nil
}

// TestValidatedAfterMutation: a review is validated as mutating admission leaves it.
func TestValidatedAfterMutation(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, func(c *server.Config) { c.Plugins = append(c.Plugins, emptying{}) })
	const group, about = "/apis/authorization.k8s.io/v1/", `"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}`
	for path, c := range map[string]struct{ spec, want string }{
		"subjectaccessreviews":                         {`"user":"jan",` + about, "exactly one of nonResourceAttributes or resourceAttributes must be specified"},
		"selfsubjectaccessreviews":                     {about, "exactly one of nonResourceAttributes or resourceAttributes must be specified"},
		"namespaces/default/localsubjectaccessreviews": {`"user":"jan",` + about, "at least one of user or group must be specified"},
	} {
		answer := s.Do("POST", group+path, `{"spec":{`+c.spec+`}}`)
		if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %q", path, answer.Code, answer.Body, c.want)
		}
	}
}
