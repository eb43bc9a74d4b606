// Package criteria decides which writes a webhook or a policy applies to, and converts the
// objects of a write to the version that its rules name.
//
// It promises: selectors, which are cheap, are checked before rules; a version that no rule
// names matches through an equivalent one only with matchPolicy Equivalent, and objects are
// then converted to the version that matched.
package criteria

import (
	"context"
	"errors"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// Namespaces finds namespaces.
type Namespaces interface {
	// Item is a stored object, or nil where there is none, for certain.
	Item(ctx context.Context, storage, namespace, name string) (*cache.Item, error)
}

// Cluster provides the state of the cluster for matching.
type Cluster struct {
	Namespaces  Namespaces
	Equivalents *Equivalents
}

// Criteria select writes. They are immutable.
type Criteria struct {
	namespaces, objects labels.Selector
	fault               error // why a selector cannot be used
	rules, except       []admissionregistrationv1.NamedRuleWithOperations
	equivalent          bool
	all                 bool // without rules every write is meant
}

// OfRules makes the criteria of a webhook, which match nothing without rules.
func OfRules(rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) *Criteria {
	c := &Criteria{equivalent: policy != nil && *policy == admissionregistrationv1.Equivalent}
	for _, r := range rules {
		c.rules = append(c.rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	c.choose(namespaces, objects)
	return c
}

// Of makes the criteria of a policy or a binding, which match everything without
// rules.
func Of(m *admissionregistrationv1.MatchResources) *Criteria {
	c := &Criteria{rules: m.ResourceRules, except: m.ExcludeResourceRules, all: len(m.ResourceRules) == 0}
	c.equivalent = m.MatchPolicy != nil && *m.MatchPolicy == admissionregistrationv1.Equivalent
	c.choose(m.NamespaceSelector, m.ObjectSelector)
	return c
}

func (c *Criteria) choose(namespaces, objects *metav1.LabelSelector) {
	var first, second error
	c.namespaces, first = selector(namespaces)
	c.objects, second = selector(objects)
	c.fault = errors.Join(first, second)
}

func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Match reports whether a write is meant, and then as which resource.
func (c *Criteria) Match(ctx context.Context, a *admission.Attributes, in Cluster) (Target, bool, error) {
	chosen, nsErr := c.namespace(ctx, a, in.Namespaces)
	if !chosen && nsErr == nil {
		return Target{}, false, nil
	}
	if c.fault == nil && !c.object(a) {
		return Target{}, false, nil
	}
	if _, excluded := find(c.except, c.equivalent, a, in.Equivalents); excluded {
		return Target{}, false, nil
	}
	as, meant := a.Resource, true
	if !c.all {
		as, meant = find(c.rules, c.equivalent, a, in.Equivalents)
	}
	if !meant {
		return Target{}, false, nil
	}
	// The error counts only if the rules match.
	switch {
	case nsErr != nil:
		return Target{}, false, nsErr
	case c.fault != nil:
		return Target{}, false, apierrors.NewInternalError(c.fault)
	}
	return Target{Resource: as, Kind: Kind(as, a.Subresource)}, true, nil
}

// namespace reports whether the namespace selector selects a write. Cluster-scoped objects other than
// namespaces are always selected.
func (c *Criteria) namespace(ctx context.Context, a *admission.Attributes, in Namespaces) (bool, error) {
	if a.Namespace == "" && a.Resource.Plural != "namespaces" {
		return true, nil
	}
	if c.fault != nil {
		return false, apierrors.NewInternalError(c.fault)
	}
	if c.namespaces.Empty() {
		return true, nil
	}
	if a.Resource.OwnNamespace() && a.Subresource == "" && (a.Operation == admission.Create || a.Operation == admission.Update) {
		if m := a.Meta(); m != nil {
			return c.namespaces.Matches(labels.Set(m.GetLabels())), nil
		}
	}
	item, err := in.Item(ctx, "namespaces", "", a.Namespace)
	switch {
	case err != nil:
		return false, apierrors.NewInternalError(err)
	case item == nil:
		return false, apierrors.NewNotFound(corev1.Resource("namespaces"), a.Namespace)
	}
	return c.namespaces.Matches(item.Meta().Labels), nil
}

// object reports whether the selector of objects chooses the object as it is or as it
// was.
func (c *Criteria) object(a *admission.Attributes) bool {
	if c.objects.Empty() {
		return true
	}
	for _, obj := range []runtime.Object{a.Object, a.Old} {
		if obj == nil {
			continue
		}
		if m, err := meta.Accessor(obj); err == nil && c.objects.Matches(labels.Set(m.GetLabels())) {
			return true
		}
	}
	return false
}

// find returns the resource by which a rule matches a write: its own first, then equivalent ones.
func find(rules []admissionregistrationv1.NamedRuleWithOperations, equivalent bool, a *admission.Attributes, equivalents *Equivalents) (*kinds.Resource, bool) {
	for i := range rules {
		if means(&rules[i], a, a.Resource) {
			return a.Resource, true
		}
	}
	if !equivalent || len(rules) == 0 {
		return nil, false
	}
	others := equivalents.Of(a.Resource)
	if len(others) == 0 {
		return nil, false
	}
	for i := range rules {
		for _, r := range others {
			if (a.Subresource == "" || r.Sub(a.Subresource) != nil) && means(&rules[i], a, r) {
				return r, true
			}
		}
	}
	return nil, false
}

// means reports whether a rule means a write, were it of resource r.
func means(rule *admissionregistrationv1.NamedRuleWithOperations, a *admission.Attributes, r *kinds.Resource) bool {
	return has(rule.APIGroups, r.Group) && has(rule.APIVersions, r.Version) &&
		slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.OperationAll || string(o) == string(a.Operation)
		}) &&
		slices.ContainsFunc(rule.Resources, func(text string) bool {
			resource, sub, _ := strings.Cut(text, "/")
			return (resource == "*" || resource == r.Plural) && (sub == "*" || sub == a.Subresource)
		}) &&
		inScope(rule.Scope, a) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

func has(list []string, v string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return item == "*" || item == v })
}

func inScope(scope *admissionregistrationv1.ScopeType, a *admission.Attributes) bool {
	if scope == nil {
		return true
	}
	namespaced := a.Namespace != "" && !a.Resource.OwnNamespace()
	switch *scope {
	case admissionregistrationv1.AllScopes:
		return true
	case admissionregistrationv1.NamespacedScope:
		return namespaced
	case admissionregistrationv1.ClusterScope:
		return !namespaced
	}
	return false
}
