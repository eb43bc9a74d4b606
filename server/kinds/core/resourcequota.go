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
	"github.com/rowlock/rowlock/server/release"
)

// ResourceQuota returns the strategy of ResourceQuotas.
func ResourceQuota(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	scopes := scopesFor(now)
	return kinds.Typed[*corev1.ResourceQuota]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(q *corev1.ResourceQuota) {
			podspec.DefaultResources(q.Spec.Hard, q.Status.Hard, q.Status.Used)
		},
		Validate: func(q *corev1.ResourceQuota) field.ErrorList {
			return append(scopes.validateSpec(&q.Spec), validateQuotaStatus(&q.Status)...)
		},
		ValidateUpdate: func(q, old *corev1.ResourceQuota) field.ErrorList { return validateQuotaUpdate(q, old, scopes) },
		Warnings: func(q, old *corev1.ResourceQuota) []string {
			if !now || old != nil {
				return nil
			}
			return quotaWarnings(q)
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		Status: &kinds.Status[*corev1.ResourceQuota]{
			Validate: func(q, _ *corev1.ResourceQuota) field.ErrorList { return validateQuotaStatus(&q.Status) },
		},
	}.Strategy()
}

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

// quotaCells shows the usage of each amount.
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

// quotaWarnings returns warnings about requests above their limits.
func quotaWarnings(q *corev1.ResourceQuota) []string {
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage} {
		requests, limits := "requests."+name, "limits."+name
		request, ok := q.Spec.Hard[requests]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requests = name
			request, ok = q.Spec.Hard[name]
		}
		if limit, limited := q.Spec.Hard[limits]; ok && limited && request.Cmp(limit) > 0 {
			out = append(out, fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", requests, request.String(), limits, limit.String()))
		}
	}
	return out
}

func validateQuotaUpdate(q, old *corev1.ResourceQuota, scopes quotaScopes) field.ErrorList {
	errs := scopes.validateSpec(&q.Spec)
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
	for _, name := range rules.Until(&errs, sorted(list)) {
		errs = append(errs, validateQuotaResourceName(name, path.Key(string(name)))...)
		errs = append(errs, podspec.ValidateResourceQuantity(name, list[name], path.Key(string(name)))...)
	}
	return errs
}

func (q quotaScopes) validateSpec(s *corev1.ResourceQuotaSpec) field.ErrorList {
	errs := validateQuotaAmounts(s.Hard, specPath.Child("hard"))
	errs = append(errs, q.validateScopes(s, specPath.Child("scopes"))...)
	if s.ScopeSelector != nil {
		errs = append(errs, q.validateSelector(s, specPath.Child("scopeSelector", "matchExpressions"))...)
	}
	return errs
}

// quotaScopes are the existing scopes, each with the resources that it can count.
type quotaScopes map[corev1.ResourceQuotaScope][]corev1.ResourceName

func scopesFor(now bool) quotaScopes {
	pods := []corev1.ResourceName{corev1.ResourcePods}
	compute := append(slices.Clone(podComputeResources), corev1.ResourcePods)
	scopes := quotaScopes{
		corev1.ResourceQuotaScopeTerminating:               compute,
		corev1.ResourceQuotaScopeNotTerminating:            compute,
		corev1.ResourceQuotaScopeBestEffort:                pods,
		corev1.ResourceQuotaScopeNotBestEffort:             compute,
		corev1.ResourceQuotaScopePriorityClass:             compute,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: compute,
	}
	if now {
		scopes[corev1.ResourceQuotaScopeVolumeAttributesClass] = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
	}
	return scopes
}

// countable reports whether a resource can be counted in a scope. Unknown scopes
// and resources of others are reported elsewhere.
func (q quotaScopes) countable(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	list, known := q[scope]
	return !known || !isQuotaResource(name) || slices.Contains(list, name)
}

// uncounted counts the resources of a quota that cannot be counted in a scope, of which there are a
// few: clients may name each as often as they like.
type uncounted struct {
	scopes quotaScopes
	counts map[corev1.ResourceQuotaScope]int
}

func (q quotaScopes) uncounted() uncounted { return uncounted{q, map[corev1.ResourceQuotaScope]int{}} }

func (u uncounted) of(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) int {
	if _, known := u.scopes[scope]; !known {
		return 0
	}
	n, ok := u.counts[scope]
	if !ok {
		for name := range hard {
			if !u.scopes.countable(scope, name) {
				n++
			}
		}
		u.counts[scope] = n
	}
	return n
}

func (q quotaScopes) validateScopes(s *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	invalid := func(message string) { errs = append(errs, field.Invalid(path, rules.Shown(s.Scopes), message)) }
	out := q.uncounted()
	for _, scope := range rules.Until(&errs, s.Scopes) {
		if _, ok := q[scope]; !ok {
			invalid("unsupported scope")
		}
		for range out.of(scope, s.Hard) {
			if len(errs) > rules.MaxErrors {
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

func (q quotaScopes) validateSelector(s *corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, out := make(map[corev1.ResourceQuotaScope]sets.Empty), q.uncounted()
	for _, r := range rules.Until(&errs, s.ScopeSelector.MatchExpressions) {
		if _, ok := q[r.ScopeName]; !ok {
			errs = append(errs, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		for range out.of(r.ScopeName, s.Hard) {
			if len(errs) > rules.MaxErrors {
				return errs
			}
			errs = append(errs, field.Invalid(path, rules.Shown(s.ScopeSelector), "unsupported scope applied to resource"))
		}
		errs = append(errs, q.validateOperator(&r, path)...)
		seen[r.ScopeName] = sets.Empty{}
	}
	return append(errs, conflictingScopes(sets.New(slices.Collect(maps.Keys(seen))...), s, path)...)
}

func (q quotaScopes) validateOperator(r *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, known := q[r.ScopeName]
	free := r.ScopeName == corev1.ResourceQuotaScopePriorityClass || r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass
	if known && !free && r.Operator != corev1.ScopeSelectorOpExists {
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
