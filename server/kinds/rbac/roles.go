// Package rbac holds the strategies of role-based access control: Role, ClusterRole and their
// bindings. Package authx/rbac decides what they grant.
package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Role returns the strategy of Roles. As everywhere in this group, a stock server of release 1.32
// checks a changed object twice, and lists its causes twice.
func Role(on kinds.Feature) kinds.Strategy {
	changed := changedIn(on)
	return kinds.Typed[*rbacv1.Role]{
		ValidateName: validateName,
		Meta:         metaIn(on),
		Validate: func(obj *rbacv1.Role) field.ErrorList {
			return validateRules(obj.Rules, true)
		},
		ValidateUpdate: func(obj, _ *rbacv1.Role) field.ErrorList {
			return changed(validateRules(obj.Rules, true))
		},
		Canonicalize: func(r *rbacv1.Role) {
			r.Rules = withoutEmpty(r.Rules)
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
	}.Strategy()
}

// ClusterRole returns the strategy of ClusterRoles.
func ClusterRole(on kinds.Feature) kinds.Strategy {
	changed := changedIn(on)
	return kinds.Typed[*rbacv1.ClusterRole]{
		ValidateName: validateName,
		Meta:         metaIn(on),
		Validate: func(obj *rbacv1.ClusterRole) field.ErrorList {
			return validateClusterRole(obj, false)
		},
		ValidateUpdate: func(r, old *rbacv1.ClusterRole) field.ErrorList {
			keep := false
			if old.AggregationRule != nil {
				for i := range old.AggregationRule.ClusterRoleSelectors {
					keep = keep || rules.SelectorInvalid(&old.AggregationRule.ClusterRoleSelectors[i])
				}
			}
			return changed(validateClusterRole(r, keep))
		},
		Canonicalize: func(r *rbacv1.ClusterRole) {
			r.Rules = withoutEmpty(r.Rules)
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
	}.Strategy()
}

// changedIn returns how often a release lists the faults of a changed object.
func changedIn(on kinds.Feature) func(field.ErrorList) field.ErrorList {
	if on.Has(release.KindRules133) {
		return func(errs field.ErrorList) field.ErrorList { return errs }
	}
	return rules.Twice
}

// metaIn returns the rules for metadata in a release.
func metaIn(on kinds.Feature) *kinds.MetaRules {
	if on.Has(release.KindRules133) {
		return &kinds.WholeMeta
	}
	return &kinds.MetaRules{Updates: 2, Wholes: 1}
}

// withoutEmpty stores an empty list as none.
func withoutEmpty(list []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if len(list) == 0 {
		return nil
	}
	return list
}

func validateClusterRole(r *rbacv1.ClusterRole, keepInvalid bool) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	p := field.NewPath("aggregationRule", "clusterRoleSelectors")
	errs = rules.RequiredIf(errs, len(r.AggregationRule.ClusterRoleSelectors) == 0, p, "at least one clusterRoleSelector required if aggregationRule is non-nil")
	return append(errs, rules.EachPtr(r.AggregationRule.ClusterRoleSelectors, p, func(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
		errs := rules.LooseSelector(s, keepInvalid, at)
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			errs = append(errs, field.Invalid(at, nil, "invalid label selector."))
		}
		return errs
	})...)
}

func validateRules(list []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	return rules.EachPtr(list, field.NewPath("rules"), func(r *rbacv1.PolicyRule, at *field.Path) field.ErrorList {
		return validateRule(r, namespaced, at)
	})
}

func validateRule(r *rbacv1.PolicyRule, namespaced bool, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, len(r.Verbs) == 0, p.Child("verbs"), "verbs must contain at least one value")
	if len(r.NonResourceURLs) > 0 {
		urls := p.Child("nonResourceURLs")
		errs = rules.InvalidIf(errs, namespaced, urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs")
		return rules.InvalidIf(errs, len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0, urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs")
	}
	errs = rules.RequiredIf(errs, len(r.APIGroups) == 0, p.Child("apiGroups"), "resource rules must supply at least one api group")
	return rules.RequiredIf(errs, len(r.Resources) == 0, p.Child("resources"), "resource rules must supply at least one resource")
}

// validateName holds the start of a generated name to the rules of whole names.
func validateName(name string, _ bool) []string { return path.IsValidPathSegmentName(name) }
