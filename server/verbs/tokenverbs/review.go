package tokenverbs

import (
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/writes"
)

// review serves tokenreviews.
func (cfg Config) review(h *verbs.Handler, c *verbs.Call) error {
	review := &authenticationv1.TokenReview{}
	options, err := h.ReadPost(c, gvk("TokenReview"), review)
	if err != nil {
		return err
	}
	writes.ResetServerFields(review)
	if err := c.MatchNamespace(review); err != nil {
		return err
	}
	h.Writes.Own(c.Resource, "", review, c.Manager(options.FieldManager))
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, review); err != nil {
		return err
	}
	if review.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := review.Spec.Audiences
	if len(audiences) == 0 {
		audiences = cfg.Audiences
	}
	who, ok, err := cfg.Review(c.R.Context(), review.Spec.Token, audiences)
	if ok && len(authx.Intersect(audiences, who.Audiences)) == 0 && len(audiences) > 0 {
		return apierrors.NewInternalError(fmt.Errorf("a token was taken for audiences %q that were not asked for", who.Audiences))
	}
	fill(review, who, ok, err)
	review.SetGroupVersionKind(gvk("TokenReview"))
	return h.Send(c, http.StatusCreated, review)
}

// fill sets the result; other fields of the status that the client sent stay.
func fill(review *authenticationv1.TokenReview, who *authx.Authenticated, ok bool, err error) {
	status := &review.Status
	status.Authenticated = ok
	if err != nil {
		status.Error = err.Error()
	}
	if !ok {
		return
	}
	status.User = who.Identity.UserInfo()
	status.Audiences = who.Audiences
}
