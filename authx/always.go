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
	var problems Problems
	incomplete := false
	for _, r := range list {
		some, more, part, err := r.RulesFor(ctx, user, namespace)
		resources, paths, incomplete = append(resources, some...), append(paths, more...), incomplete || part
		if several, ok := errors.AsType[Problems](err); ok {
			problems = append(problems, several...)
		} else if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) == 0 {
		return resources, paths, incomplete, nil
	}
	return resources, paths, incomplete, problems
}

// Problems are texts of errors, at least one.
type Problems []string

// Error lists each text once, in brackets where several differ, as a stock server does.
func (list Problems) Error() string {
	seen := make(map[string]bool, len(list))
	once := make([]string, 0, len(list))
	for _, text := range list {
		if !seen[text] {
			seen[text] = true
			once = append(once, text)
		}
	}
	if len(once) == 1 {
		return once[0]
	}
	return "[" + strings.Join(once, ", ") + "]"
}
