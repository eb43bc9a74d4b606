package writes

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

// checkRights refuses a change that needs rights which the user has not.
func (w *Writer) checkRights(ctx context.Context, req *Request, s *kinds.Strategy, obj, old kinds.Object) (errs field.ErrorList) {
	if s.Rights == nil {
		return nil
	}
	for _, r := range s.Rights(obj, old, req.Verb, nodeOf(req.User)) {
		if err := w.checkRight(ctx, req, &r); err != nil {
			errs = append(errs, field.Forbidden(r.Field, r.Detail+": "+err.Error()))
		}
	}
	return errs
}

// checkRight says why a user has not a right for which one of several verbs is enough.
func (w *Writer) checkRight(ctx context.Context, req *Request, r *kinds.Right) (first error) {
	for _, verb := range r.Verbs {
		a := &authx.Attributes{
			User: req.User, Verb: verb, Path: req.Path, ResourceRequest: true, APIGroup: req.Resource.Group, APIVersion: req.Resource.Version,
			Resource: req.Resource.Plural, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
		}
		reason := ""
		if w.Authorizer != nil {
			p, why, err := permits.Authorize(ctx, w.Authorizer, a)
			switch {
			case p.Valid():
				return nil
			case err != nil && why != "":
				why = err.Error() + ": " + why
			case err != nil:
				why = err.Error()
			}
			reason = why
		}
		if first == nil {
			first = permits.Forbidden(a, reason)
		}
	}
	return first
}

// nodeOf is the node of the pod that the token of a service account is bound to; "" if there is none.
func nodeOf(user *authx.Identity) string {
	if user == nil || !strings.HasPrefix(user.Name, "system:serviceaccount:") {
		return ""
	}
	if nodes := user.Extra[authx.NodeName]; len(nodes) == 1 {
		return nodes[0]
	}
	return ""
}
