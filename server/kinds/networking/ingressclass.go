package networking

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	maxController  = 250
	scopeCluster   = networkingv1.IngressClassParametersReferenceScopeCluster
	scopeNamespace = networkingv1.IngressClassParametersReferenceScopeNamespace
)

// IngressClass returns the strategy of IngressClasses.
func IngressClass(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*networkingv1.IngressClass]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default: func(obj *networkingv1.IngressClass) {
			if p := obj.Spec.Parameters; p != nil {
				rules.DefaultTo(&p.Scope, scopeCluster)
			}
		},
		Counted: func(c *networkingv1.IngressClass) []any { return []any{c.Spec} },
		Validate: func(obj *networkingv1.IngressClass) field.ErrorList {
			return validateIngressClass(&obj.Spec, now)
		},
		ValidateUpdate: func(c, old *networkingv1.IngressClass) field.ErrorList {
			errs := rules.Immutable(c.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller"))
			return append(errs, validateIngressClass(&c.Spec, now)...)
		},
		UnconditionalUpdate: true,
	}.Strategy()
}

// IngressClassColumns is their Table form.
var IngressClassColumns = columns.Of(ingressClassCells,
	columns.Name(),
	columns.Text("Controller", "Controller that is responsible for handling this class"),
	columns.Text("Parameters", "A reference to a resource with additional parameters"),
	columns.Age(),
)

// IngressClassColumnsSince133 is their Table form since release 1.33, which marks the default.
var IngressClassColumnsSince133 = columns.Of(func(c *networkingv1.IngressClass, now time.Time) []any {
	cells := ingressClassCells(c, now)
	if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
		cells[0] = c.Name + " (default)"
	}
	return cells
}, IngressClassColumns.Definitions...)

func ingressClassCells(c *networkingv1.IngressClass, now time.Time) []any {
	parameters := "<none>"
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{c.Name, c.Spec.Controller, parameters, columns.Since(c.CreationTimestamp, now)}
}

// now are the rules of releases after 1.32.
func validateIngressClass(s *networkingv1.IngressClassSpec, now bool) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if len(s.Controller) > maxController {
		errs = append(errs, field.TooLong(p.Child("controller"), "", maxController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(p.Child("controller"), s.Controller)...)
	return append(errs, rules.OptionalPtr(s.Parameters, p.Child("parameters"), func(r *networkingv1.IngressClassParametersReference, p *field.Path) field.ErrorList {
		return validateParameters(r, p, now)
	})...)
}

func validateParameters(r *networkingv1.IngressClassParametersReference, p *field.Path, now bool) field.ErrorList {
	errs := validateReference(&corev1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}, p, now)
	if r.Scope == nil {
		return append(errs, field.Required(p.Child("scope"), ""))
	}
	namespace := p.Child("namespace")
	switch *r.Scope {
	case scopeNamespace:
		if r.Namespace == nil {
			return append(errs, field.Required(namespace, "`parameters.scope` is set to 'Namespace'"))
		}
		return append(errs, rules.Messages(namespace, *r.Namespace, apivalidation.ValidateNamespaceName(*r.Namespace, false))...)
	case scopeCluster:
		return rules.ForbiddenIf(errs, r.Namespace != nil, namespace, "`parameters.scope` is set to 'Cluster'")
	default:
		return append(errs, field.NotSupported(p.Child("scope"), *r.Scope, []string{scopeCluster, scopeNamespace}))
	}
}
