package authx

import (
	"context"
	"errors"
	"strings"
)

// AlwaysAllow allows everything.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return Allow, "", nil
}

// RulesFor implements RuleResolver.
func (AlwaysAllow) RulesFor(context.Context, *Identity, string) ([]ResourceRule, []NonResourceRule, bool, error) {
	all := []string{"*"}
	return []ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}, []NonResourceRule{{Verbs: all, NonResourceURLs: all}}, false, nil
}

// AlwaysDeny has no opinion on anything, with a reason.
type AlwaysDeny struct{}

// Authorize implements Authorizer.
func (AlwaysDeny) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return NoOpinion, "Everything is forbidden.", nil
}

// RulesFor implements RuleResolver.
func (AlwaysDeny) RulesFor(context.Context, *Identity, string) ([]ResourceRule, []NonResourceRule, bool, error) {
	return nil, nil, false, nil
}

// Resolvers puts the rules of several together, in order.
type Resolvers []RuleResolver

// RulesFor implements RuleResolver. It is incomplete if one of them is.
func (list Resolvers) RulesFor(ctx context.Context, user *Identity, namespace string) ([]ResourceRule, []NonResourceRule, bool, error) {
	var resources []ResourceRule
	var paths []NonResourceRule
	var problems []string
	incomplete := false
	for _, r := range list {
		some, more, part, err := r.RulesFor(ctx, user, namespace)
		resources, paths, incomplete = append(resources, some...), append(paths, more...), incomplete || part
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	switch len(problems) {
	case 0:
		return resources, paths, incomplete, nil
	case 1:
		return resources, paths, incomplete, errors.New(problems[0])
	}
	return resources, paths, incomplete, errors.New("[" + strings.Join(problems, ", ") + "]")
}
