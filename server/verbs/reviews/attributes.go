package reviews

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rowlock/rowlock/authx"
)

func (r *reviewer) decide(ctx context.Context, a *authx.Attributes) authorizationv1.SubjectAccessReviewStatus {
	d, reason, err := r.Authorizer.Authorize(ctx, a)
	var problems []string
	if err != nil {
		problems = append(problems, err.Error())
	}
	const path = "spec.resourceAttributes."
	if a.FieldErr != nil {
		problems = append(problems, path+"fieldSelector "+ignored(len(a.FieldRequirements)))
	}
	if a.LabelErr != nil {
		problems = append(problems, path+"labelSelector "+ignored(len(a.LabelRequirements)))
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: d == authx.Allow, Denied: d == authx.Deny, Reason: reason, EvaluationError: strings.Join(problems, "; "),
	}
}

func ignored(kept int) string {
	if kept > 0 {
		return "partially ignored due to parse error"
	}
	return "ignored due to parse error"
}

// userOf returns the user of a review.
func userOf(s *authorizationv1.SubjectAccessReviewSpec) *authx.Identity {
	id := &authx.Identity{Name: s.User, UID: s.UID, Groups: s.Groups}
	for k, v := range s.Extra {
		if id.Extra == nil {
			id.Extra = map[string][]string{}
		}
		id.Extra[k] = v
	}
	return id
}

// attributes returns the attributes of the request in a review. Either resource or path is set.
func attributes(user *authx.Identity, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) *authx.Attributes {
	if r == nil {
		return &authx.Attributes{User: user, Verb: n.Verb, Path: n.Path}
	}
	a := &authx.Attributes{
		User: user, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group, APIVersion: r.Version,
		Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, ResourceRequest: true,
	}
	a.APIVersion = cmp.Or(a.APIVersion, "*")
	if r.FieldSelector != nil {
		a.FieldRequirements, a.FieldErr = fieldRequirements(r.FieldSelector)
	}
	if r.LabelSelector != nil {
		a.LabelRequirements, a.LabelErr = labelRequirements(r.LabelSelector)
	}
	return a
}

// fieldRequirements returns the valid requirements, and an error about one of the others.
func fieldRequirements(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return parsed.Requirements(), nil
	}
	var out fields.Requirements
	var bad error
	for _, r := range s.Requirements {
		op := selection.Equals
		switch r.Operator {
		case metav1.FieldSelectorOpIn:
		case metav1.FieldSelectorOpNotIn:
			op = selection.NotEquals
		default:
			bad = fmt.Errorf("%s: operator %q is not supported", r.Key, r.Operator)
			continue
		}
		if len(r.Values) != 1 {
			bad = fmt.Errorf("%s: want one value, have %d", r.Key, len(r.Values))
			continue
		}
		out = append(out, fields.Requirement{Operator: op, Field: r.Key, Value: r.Values[0]})
	}
	return out, bad
}

var labelOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
	metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// labelRequirements returns the valid requirements, and an error about one of the others.
func labelRequirements(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		out, _ := parsed.Requirements()
		return out, nil
	}
	var out labels.Requirements
	var bad error
	for _, r := range s.Requirements {
		op, ok := labelOperators[r.Operator]
		if !ok {
			bad = fmt.Errorf("%s: operator %q is not known", r.Key, r.Operator)
			continue
		}
		made, err := labels.NewRequirement(r.Key, op, r.Values)
		if err != nil {
			bad = err
			continue
		}
		out = append(out, *made)
	}
	return out, bad
}
