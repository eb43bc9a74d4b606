// Package reviews serves access reviews: whether a user may make a request, what the caller may do, and its identity. It stores nothing. An answer
// is the decision of the authorizers on a request with the same attributes at that moment.
package reviews

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/writes"
)

// Config has the authorizers.
type Config struct {
	Authorizer authx.Authorizer
	Rules      authx.RuleResolver
	// IgnoreSelectors drops the selectors of reviews, as the gate AuthorizeWithSelectors is off.
	IgnoreSelectors bool
}

// Handlers returns the specials for verbs.Handler.Special.
func Handlers(c Config) map[string]verbs.Special {
	r := &reviewer{c}
	return map[string]verbs.Special{
		"subjectaccessreviews.authorization.k8s.io":      r.subject,
		"localsubjectaccessreviews.authorization.k8s.io": r.local,
		"selfsubjectaccessreviews.authorization.k8s.io":  r.self,
		"selfsubjectrulesreviews.authorization.k8s.io":   r.rulesOf,
		"selfsubjectreviews.authentication.k8s.io":       whoAmI,
	}
}

type reviewer struct{ Config }

// known drops the selectors if their gate is off.
func (r *reviewer) known(a *authorizationv1.ResourceAttributes) {
	if a != nil && r.IgnoreSelectors {
		a.FieldSelector, a.LabelSelector = nil, nil
	}
}

func (r *reviewer) subject(h *verbs.Handler, c *verbs.Call) error {
	review := &authorizationv1.SubjectAccessReview{}
	validate := func() field.ErrorList { return validateSubject(&review.Spec, &review.ObjectMeta) }
	return r.access(h, c, review, &review.Spec, &review.Status, validate)
}

func (r *reviewer) local(h *verbs.Handler, c *verbs.Call) error {
	review := &authorizationv1.LocalSubjectAccessReview{}
	validate := func() field.ErrorList { return validateLocal(review) }
	return r.access(h, c, review, &review.Spec, &review.Status, validate)
}

func (r *reviewer) self(h *verbs.Handler, c *verbs.Call) error {
	review := &authorizationv1.SelfSubjectAccessReview{}
	validate := func() field.ErrorList { return validateSelf(review) }
	return r.access(h, c, review, &review.Spec, &review.Status, validate)
}

// access answers an access review. spec and answer are parts of it.
func (r *reviewer) access(h *verbs.Handler, c *verbs.Call, review kinds.Object, spec any, answer *authorizationv1.SubjectAccessReviewStatus, validate func() field.ErrorList) error {
	options, err := read(h, c, review)
	if err != nil {
		return err
	}
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, review, func() error {
		_, resource, _ := requestOf(c, spec)
		r.known(resource)
		if errs := validate(); len(errs) > 0 {
			return status.Invalid(c.Resource.Release, schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
		}
		return nil
	}); err != nil {
		return err
	}
	*answer = r.decide(c.Context(), attributes(requestOf(c, spec)))
	return h.Send(c, http.StatusCreated, review)
}

// requestOf returns the user, and the resource or path, that the spec of a review is about.
func requestOf(c *verbs.Call, spec any) (*authx.Identity, *authorizationv1.ResourceAttributes, *authorizationv1.NonResourceAttributes) {
	if s, ok := spec.(*authorizationv1.SubjectAccessReviewSpec); ok {
		return userOf(s), s.ResourceAttributes, s.NonResourceAttributes
	}
	s := spec.(*authorizationv1.SelfSubjectAccessReviewSpec)
	return c.User, s.ResourceAttributes, s.NonResourceAttributes
}

// rulesOf lists the caller's permissions in a namespace. The answer does not repeat the spec.
func (r *reviewer) rulesOf(h *verbs.Handler, c *verbs.Call) error {
	review := &authorizationv1.SelfSubjectRulesReview{}
	options, err := read(h, c, review)
	if err != nil {
		return err
	}
	if review.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, review); err != nil {
		return err
	}
	resources, paths, incomplete, problem := r.Rules.RulesFor(c.Context(), c.User, review.Spec.Namespace)
	answer := &authorizationv1.SelfSubjectRulesReview{TypeMeta: review.TypeMeta, Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    make([]authorizationv1.ResourceRule, len(resources)),
		NonResourceRules: make([]authorizationv1.NonResourceRule, len(paths)),
		Incomplete:       incomplete,
	}}
	for i, rule := range resources {
		answer.Status.ResourceRules[i] = authorizationv1.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		}
	}
	for i, rule := range paths {
		answer.Status.NonResourceRules[i] = authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs}
	}
	if problem != nil {
		answer.Status.EvaluationError = problem.Error()
	}
	return h.Send(c, http.StatusCreated, answer)
}

// whoAmI answers with the caller's identity.
func whoAmI(h *verbs.Handler, c *verbs.Call) error {
	review := &authenticationv1.SelfSubjectReview{}
	options, err := read(h, c, review)
	if err != nil {
		return err
	}
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, review); err != nil {
		return err
	}
	answer := &authenticationv1.SelfSubjectReview{TypeMeta: review.TypeMeta}
	answer.CreationTimestamp = metav1.NewTime(h.Writes.Clock())
	answer.Status.UserInfo = c.User.UserInfo()
	return h.Send(c, http.StatusCreated, answer)
}

// read takes the body and the options of a review.
func read(h *verbs.Handler, c *verbs.Call, obj kinds.Object) (*metav1.CreateOptions, error) {
	gvk := c.Resource.GVK()
	options, err := h.ReadPost(c, gvk, obj)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	writes.ResetServerFields(obj)
	if err := c.MatchNamespace(obj); err != nil {
		return nil, err
	}
	h.Writes.Own(c.Resource, "", obj, c.Manager(options.FieldManager))
	return options, nil
}
