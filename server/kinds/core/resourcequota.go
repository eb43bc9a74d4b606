package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ResourceQuota is how ResourceQuotas are written.
var ResourceQuota = kinds.Typed[*corev1.ResourceQuota]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Default:             defaultQuota,
	Validate:            validateQuota,
	ValidateUpdate:      validateQuotaUpdate,
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
	Status: &kinds.Status[*corev1.ResourceQuota]{
		Validate: func(q, _ *corev1.ResourceQuota) field.ErrorList { return validateQuotaStatus(&q.Status) },
	},
}.Strategy()

// ResourceQuotaColumns is their Table form, and ResourceQuotaColumnsSince133 that since release 1.33.
var (
	ResourceQuotaColumns = columns.Of(func(q *corev1.ResourceQuota, now time.Time) []any {
		requests, limits := quotaCells(q)
		return []any{q.Name, columns.Since(q.CreationTimestamp, now), requests, limits}
	}, columns.Name(), columns.Age(), quotaRequests, quotaLimits)
	ResourceQuotaColumnsSince133 = columns.Of(func(q *corev1.ResourceQuota, now time.Time) []any {
		requests, limits := quotaCells(q)
		return []any{q.Name, requests, limits, columns.Since(q.CreationTimestamp, now)}
	}, columns.Name(), quotaRequests, quotaLimits, columns.Age())

	quotaRequests = columns.Text("Request", "Request represents a minimum amount of cpu/memory that a container may consume.")
	quotaLimits   = columns.Text("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.")
)

// quotaCells shows what is used of each amount.
func quotaCells(q *corev1.ResourceQuota) (request, limit string) {
	var requests, limits []string
	for _, name := range sorted(q.Status.Hard) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		cell := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, cell)
		} else {
			requests = append(requests, cell)
		}
	}
	return strings.Join(requests, ", "), strings.Join(limits, ", ")
}

func defaultQuota(q *corev1.ResourceQuota) {
	podspec.DefaultResources(q.Spec.Hard, q.Status.Hard, q.Status.Used)
}

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	return append(validateQuotaSpec(&q.Spec), validateQuotaStatus(&q.Status)...)
}

func validateQuotaUpdate(q, old *corev1.ResourceQuota) field.ErrorList {
	errs := validateQuotaSpec(&q.Spec)
	if !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(specPath.Child("scopes"), rules.Shown(q.Spec.Scopes), apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateQuotaStatus(s *corev1.ResourceQuotaStatus) field.ErrorList {
	return append(validateQuotaAmounts(s.Hard, statusPath.Child("hard")), validateQuotaAmounts(s.Used, statusPath.Child("used"))...)
}

func validateQuotaAmounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sorted(list) {
		errs = append(errs, validateQuotaResourceName(name, path.Key(string(name)))...)
		errs = append(errs, podspec.ValidateResourceQuantity(name, list[name], path.Key(string(name)))...)
	}
	return errs
}

func validateQuotaSpec(s *corev1.ResourceQuotaSpec) field.ErrorList {
	errs := validateQuotaAmounts(s.Hard, specPath.Child("hard"))
	errs = append(errs, validateQuotaScopes(s, specPath.Child("scopes"))...)
	if s.ScopeSelector != nil {
		errs = append(errs, validateScopeSelector(s, specPath.Child("scopeSelector", "matchExpressions"))...)
	}
	return errs
}

// quotaScopes are the scopes that exist, each with whether compute resources can
// be counted in it; pods can in all of them.
var quotaScopes = map[corev1.ResourceQuotaScope]bool{
	corev1.ResourceQuotaScopeTerminating:               true,
	corev1.ResourceQuotaScopeNotTerminating:            true,
	corev1.ResourceQuotaScopeBestEffort:                false,
	corev1.ResourceQuotaScopeNotBestEffort:             true,
	corev1.ResourceQuotaScopePriorityClass:             true,
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity: true,
}

// countable reports whether a resource can be counted in a scope. Unknown scopes
// and resources of others are reported elsewhere.
func countable(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	compute, known := quotaScopes[scope]
	if !known || !isQuotaResource(name) || name == corev1.ResourcePods {
		return true
	}
	return compute && slices.Contains(podComputeResources, name)
}

// uncounted is how many resources of a quota cannot be counted in a scope, of which there are a few:
// clients may name each as often as they like.
type uncounted map[corev1.ResourceQuotaScope]int

func (u uncounted) of(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) int {
	if _, known := quotaScopes[scope]; !known {
		return 0
	}
	n, ok := u[scope]
	if !ok {
		for name := range hard {
			if !countable(scope, name) {
				n++
			}
		}
		u[scope] = n
	}
	return n
}

func validateQuotaScopes(s *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	invalid := func(message string) { errs = append(errs, field.Invalid(path, rules.Shown(s.Scopes), message)) }
	out := uncounted{}
	for _, scope := range s.Scopes {
		if _, ok := quotaScopes[scope]; !ok {
			invalid("unsupported scope")
		}
		for range out.of(scope, s.Hard) {
			if len(errs) > rules.Enough {
				return errs
			}
			invalid("unsupported scope applied to resource")
		}
	}
	return append(errs, conflictingScopes(sets.New(s.Scopes...), s, path)...)
}

func conflictingScopes(scopes sets.Set[corev1.ResourceQuotaScope], s *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if scopes.HasAll(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort) {
		errs = append(errs, field.Invalid(path, rules.Shown(s.Scopes), "conflicting scopes"))
	}
	if scopes.HasAll(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating) {
		errs = append(errs, field.Invalid(path, rules.Shown(s.Scopes), "conflicting scopes"))
	}
	return errs
}

func validateScopeSelector(s *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, out := make(map[corev1.ResourceQuotaScope]sets.Empty), uncounted{}
	for _, r := range s.ScopeSelector.MatchExpressions {
		if _, ok := quotaScopes[r.ScopeName]; !ok {
			errs = append(errs, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		for range out.of(r.ScopeName, s.Hard) {
			if len(errs) > rules.Enough {
				return errs
			}
			errs = append(errs, field.Invalid(path, rules.Shown(s.ScopeSelector), "unsupported scope applied to resource"))
		}
		errs = append(errs, validateScopeOperator(&r, path)...)
		seen[r.ScopeName] = sets.Empty{}
	}
	return append(errs, conflictingScopes(sets.New(slices.Collect(maps.Keys(seen))...), s, path)...)
}

func validateScopeOperator(r *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, known := quotaScopes[r.ScopeName]
	if known && r.ScopeName != corev1.ResourceQuotaScopePriorityClass && r.Operator != corev1.ScopeSelectorOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator,
			"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		errs = rules.RequiredIf(errs, len(r.Values) == 0, path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		errs = rules.InvalidIf(errs, len(r.Values) != 0, path.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return errs
}
