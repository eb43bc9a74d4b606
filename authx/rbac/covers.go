package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// maxComparisons bounds the work of Uncovered, in comparisons of two strings: less
// than a second.
const maxComparisons = 50_000_000

// maxParts bounds its memory, and the length of a refusal.
const maxParts = 100_000

// ErrTooMany: rules would have to be compared in too many parts.
var ErrTooMany = errors.New("the rules have too many parts to be compared")

// Uncovered returns the permissions that rules grant and held does not, one verb on one
// resource per rule. It is empty if a user with the rules held may grant rules. A few short
// lists can mean millions of permissions; with ErrTooMany, it has not checked all of them.
func Uncovered(held, rules []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	var missing []rbacv1.PolicyRule
	left, each, most := maxComparisons, 1, maxParts
	for i := range held {
		each += words(&held[i])
	}
	for i := range rules {
		whole := false
		for k := 0; k < len(held) && !whole; k++ {
			if left--; left < 0 {
				return missing, ErrTooMany
			}
			whole = coversAll(&held[k], &rules[i], &left)
		}
		if whole {
			continue
		}
		n := parts(&rules[i])
		if n > left/each || n > most {
			return missing, ErrTooMany
		}
		left, most = left-n*each, most-n
		breakDown(&rules[i], func(part rbacv1.PolicyRule) {
			for j := range held {
				if covers(&held[j], &part) {
					return
				}
			}
			missing = append(missing, part)
		})
	}
	return missing, nil
}

// parts returns the number of smallest rules that a rule consists of, or more than the bound.
func parts(r *rbacv1.PolicyRule) int {
	n := 1
	for _, list := range []int{len(r.Verbs), len(r.APIGroups), len(r.Resources), max(1, len(r.ResourceNames))} {
		if n *= list; n > maxParts {
			return maxParts + 1
		}
	}
	return min(n+len(r.Verbs)*len(r.NonResourceURLs), maxParts+1)
}

// words returns the number of strings in a rule.
func words(r *rbacv1.PolicyRule) int {
	return len(r.Verbs) + len(r.APIGroups) + len(r.Resources) + len(r.ResourceNames) + len(r.NonResourceURLs)
}

// coversAll reports whether one rule grants all of another, looking at its lists as a
// whole. It may return false although all parts are covered. It takes the comparisons of two strings that it makes from left.
func coversAll(held, r *rbacv1.PolicyRule, left *int) bool {
	const long = 32
	contains := func(list []string, s string) bool {
		at := slices.Index(list, s)
		if at < 0 {
			*left -= len(list)
		} else {
			*left -= at + 1
		}
		return at >= 0
	}
	all := func(have, want []string) bool {
		return len(want) <= len(have) && len(have) <= long && !slices.ContainsFunc(want, func(s string) bool { return !contains(have, s) })
	}
	wild := func(have, want []string) bool { return contains(have, "*") || all(have, want) }
	return wild(held.Verbs, r.Verbs) && wild(held.APIGroups, r.APIGroups) && wild(held.Resources, r.Resources) &&
		wild(held.NonResourceURLs, r.NonResourceURLs) && (len(held.ResourceNames) == 0 || len(r.ResourceNames) > 0 && all(held.ResourceNames, r.ResourceNames))
}

// breakDown calls fn with each of the smallest rules that a rule consists of.
func breakDown(r *rbacv1.PolicyRule, fn func(rbacv1.PolicyRule)) {
	for _, verb := range r.Verbs {
		verbs := []string{verb}
		for _, url := range r.NonResourceURLs {
			fn(rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{url}})
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				part := rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
				if len(r.ResourceNames) == 0 {
					fn(part)
				}
				for _, name := range r.ResourceNames {
					part.ResourceNames = []string{name}
					fn(part)
				}
			}
		}
	}
}

// covers reports whether a rule grants all that one of the smallest rules grants.
func covers(held, part *rbacv1.PolicyRule) bool {
	if !has(held.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return pathMatches(held.NonResourceURLs, part.NonResourceURLs[0])
	}
	if !has(held.APIGroups, part.APIGroups[0]) {
		return false
	}
	if len(held.ResourceNames) > 0 && (len(part.ResourceNames) == 0 || !slices.Contains(held.ResourceNames, part.ResourceNames[0])) {
		return false
	}
	resource := part.Resources[0]
	if has(held.Resources, resource) {
		return true
	}
	_, sub, ok := strings.Cut(resource, "/")
	return ok && slices.Contains(held.Resources, "*/"+sub)
}

// Describe prints rules for a refusal: sorted, each once, verbs of the same resources together.
func Describe(rules []rbacv1.PolicyRule) string {
	lines := make([]string, 0, len(rules))
	for _, r := range together(rules) {
		lines = append(lines, describe(&r))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// together joins the smallest rules that differ in their verb alone. Rules of
// paths stay as they are.
func together(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	at := map[[3]string]int{}
	for _, r := range rules {
		if len(r.NonResourceURLs) > 0 {
			out = append(out, r)
			continue
		}
		k := [3]string{r.APIGroups[0], r.Resources[0], ""}
		if len(r.ResourceNames) > 0 {
			k[2] = "=" + r.ResourceNames[0]
		}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, r)
			out[i].Verbs = nil
		}
		out[i].Verbs = append(out[i].Verbs, r.Verbs...) // as often as they are missing
	}
	return out
}

func describe(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name string
		list []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(p.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
