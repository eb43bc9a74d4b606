package writes

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

// checkRights refuses a change that needs rights which the user lacks.
func (w *Writer) checkRights(ctx context.Context, req *Request, s *kinds.Strategy, obj, old kinds.Object, last bool) (errs field.ErrorList) {
	if s.Rights == nil {
		return nil
	}
	for _, r := range s.Rights(obj, old, req.Verb, nodeOf(req.User)) {
		if r.Last != last {
			continue
		}
		err := w.checkRight(ctx, req, &r)
		if err == nil {
			continue
		}
		user := ""
		if req.User != nil {
			user = req.User.Name
		}
		detail := r.Detail(user)
		if !r.Brief {
			detail += ": " + err.Error()
		}
		errs = append(errs, field.Forbidden(r.Field, detail))
	}
	return errs
}

// checkRight returns why a user lacks a right; one of several verbs, for one of several names, suffices.
func (w *Writer) checkRight(ctx context.Context, req *Request, r *kinds.Right) (first error) {
	a := authx.Attributes{
		User: req.User, Path: req.Path, ResourceRequest: true, APIGroup: req.Resource.Group, APIVersion: req.Resource.Version,
		Resource: req.Resource.Plural, Subresource: r.Subresource, Namespace: r.Namespace,
	}
	if r.Resource != "" {
		a.APIVersion, a.Resource = "*", r.Resource
	}
	names := r.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range r.Verbs {
		for _, name := range names {
			a := a
			a.Verb, a.Name = verb, name
			err := w.allowed(ctx, &a)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// allowed returns why an authorizer does not allow a request.
func (w *Writer) allowed(ctx context.Context, a *authx.Attributes) error {
	p, why, err := permits.Authorize(ctx, w.Authorizer, a)
	switch {
	case p.Valid():
		return nil
	case err != nil && why != "":
		why = err.Error() + ": " + why
	case err != nil:
		why = err.Error()
	}
	return permits.Forbidden(a, why)
}

// nodeOf returns the node of the pod to which a service account token is bound; "" if there is none.
func nodeOf(user *authx.Identity) string {
	if user == nil || !strings.HasPrefix(user.Name, "system:serviceaccount:") {
		return ""
	}
	if nodes := user.Extra[authx.NodeName]; len(nodes) == 1 {
		return nodes[0]
	}
	return ""
}
