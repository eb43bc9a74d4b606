// Package networking holds the strategies of the networking group: Ingresses, IngressClasses,
// NetworkPolicies, IPAddresses and ServiceCIDRs.
package networking

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// classAnnotation is the older way to name the class of an Ingress.
const classAnnotation = "kubernetes.io/ingress.class"

// Ingress returns the strategy of Ingresses.
func Ingress(on kinds.Feature) kinds.Strategy {
	r := leniency{now: on.Has(release.KindRules133), digitFirst: on("RelaxedServiceNameValidation"), strict: on("StrictIPCIDRValidation")}
	return kinds.Typed[*networkingv1.Ingress]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                &kinds.WholeMeta,
		Counted:             func(i *networkingv1.Ingress) []any { return []any{i.Spec} },
		Validate:            r.validate,
		ValidateUpdate:      r.validateUpdate,
		Warnings:            ingressWarnings,
		UnconditionalUpdate: true,
		Status: &kinds.Status[*networkingv1.Ingress]{Validate: r.validateStatus, Warnings: func(i, _ *networkingv1.Ingress) []string {
			if !r.now {
				return nil
			}
			var out []string
			for k, a := range i.Status.LoadBalancer.Ingress {
				out = append(out, rules.IPWarnings(a.IP, field.NewPath("status", "loadBalancer", "ingress").Index(k))...)
			}
			return out
		}},
	}.Strategy()
}

// IngressColumns is their Table form.
var IngressColumns = columns.Of(ingressCells,
	columns.Name(),
	columns.Text("Class", "The name of the IngressClass resource that should be used for additional configuration"),
	columns.Text("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
	columns.Text("Address", "Address is a list containing ingress points for the load-balancer"),
	columns.Text("Ports", "Ports of TLS configurations that open"),
	columns.Age(),
)

func ingressCells(i *networkingv1.Ingress, now time.Time) []any {
	class := "<none>"
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var addresses []string
	for _, a := range i.Status.LoadBalancer.Ingress {
		if a.IP != "" {
			addresses = append(addresses, a.IP)
		} else if a.Hostname != "" {
			addresses = append(addresses, a.Hostname)
		}
	}
	slices.Sort(addresses)
	return []any{
		i.Name, class, hosts(i.Spec.Rules), strings.Join(slices.Compact(addresses), ","), ports,
		columns.Since(i.CreationTimestamp, now),
	}
}

// hosts lists the first three hosts of the rules.
func hosts(list []networkingv1.IngressRule) string {
	const most = 3
	var shown []string
	more := false
	for i := range list {
		if len(shown) == most {
			more = true
			break
		}
		if list[i].Host != "" {
			shown = append(shown, list[i].Host)
		}
	}
	switch {
	case len(shown) == 0:
		return "*"
	case more:
		return fmt.Sprintf("%s + %d more...", strings.Join(shown, ","), len(list)-most)
	default:
		return strings.Join(shown, ",")
	}
}

// leniency keeps old Ingresses writable that violate later rules, and holds the rules of a release.
type leniency struct {
	now          bool // the rules after release 1.32
	strict       bool // addresses have one form
	digitFirst   bool // names of services may begin with a digit
	secretName   bool // names of TLS secrets
	wildcardRule bool // rules of wildcard hosts
}

func (l leniency) validate(i *networkingv1.Ingress) field.ErrorList {
	errs := validateIngressSpec(&i.Spec, l)
	if class, ok := i.Annotations[classAnnotation]; ok && i.Spec.IngressClassName != nil && class != *i.Spec.IngressClassName {
		errs = append(errs, field.Invalid(field.NewPath("annotations").Child(classAnnotation), class, "must match `ingressClassName` when both are specified"))
	}
	return errs
}

func (l leniency) validateUpdate(obj, old *networkingv1.Ingress) field.ErrorList {
	l.digitFirst = l.digitFirst || l.now && hasDigitFirst(&old.Spec)
	for i := range old.Spec.TLS {
		l.secretName = l.secretName || len(secretNameFaults(old.Spec.TLS[i].SecretName)) > 0
	}
	for i := range old.Spec.Rules {
		r := &old.Spec.Rules[i]
		l.wildcardRule = l.wildcardRule || strings.Contains(r.Host, "*") && len(l.validateHTTP(r.HTTP, nil)) > 0
	}
	return validateIngressSpec(&obj.Spec, l)
}

// hasDigitFirst reports whether a backend names a service as no release before the relaxed rule let it.
func hasDigitFirst(s *networkingv1.IngressSpec) bool {
	is := func(b *networkingv1.IngressBackend) bool {
		return b.Service != nil && len(validation.IsDNS1123Label(b.Service.Name)) == 0 && len(validation.IsDNS1035Label(b.Service.Name)) > 0
	}
	if s.DefaultBackend != nil && is(s.DefaultBackend) {
		return true
	}
	for i := range s.Rules {
		if h := s.Rules[i].HTTP; h != nil && slices.ContainsFunc(h.Paths, func(p networkingv1.HTTPIngressPath) bool { return is(&p.Backend) }) {
			return true
		}
	}
	return false
}

func validateIngressSpec(s *networkingv1.IngressSpec, l leniency) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		errs = append(errs, field.Invalid(p, rules.Shown(s.Rules), "either `defaultBackend` or `rules` must be specified"))
	}
	errs = append(errs, rules.OptionalPtr(s.DefaultBackend, p.Child("defaultBackend"), l.validateBackend)...)
	errs = append(errs, rules.EachPtr(s.Rules, p.Child("rules"), l.validateRule)...)
	errs = append(errs, rules.EachPtr(s.TLS, p.Child("tls"), l.validateTLS)...)
	if class := s.IngressClassName; class != nil {
		errs = append(errs, rules.Subdomain(*class, p.Child("ingressClassName"))...)
	}
	return errs
}

// validateHost checks a host name; the first label may be a wildcard.
func validateHost(host string, p *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return rules.Messages(p, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return rules.Subdomain(host, p)
}

func (l leniency) validateTLS(t *networkingv1.IngressTLS, p *field.Path) field.ErrorList {
	errs := rules.Each(t.Hosts, p.Child("hosts"), validateHost)
	if !l.secretName {
		errs = append(errs, rules.Messages(p.Child("secretName"), t.SecretName, secretNameFaults(t.SecretName))...)
	}
	return errs
}

func secretNameFaults(name string) []string {
	if name == "" {
		return nil
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

func (l leniency) validateRule(r *networkingv1.IngressRule, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Host != "" {
		errs = rules.InvalidIf(errs, rules.IsIP(r.Host), p.Child("host"), r.Host, "must be a DNS name, not an IP address")
		errs = append(errs, validateHost(r.Host, p.Child("host"))...)
	}
	if l.wildcardRule && strings.Contains(r.Host, "*") {
		return errs
	}
	return append(errs, l.validateHTTP(r.HTTP, p.Child("http"))...)
}

func (l leniency) validateHTTP(h *networkingv1.HTTPIngressRuleValue, p *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	p = p.Child("paths")
	if len(h.Paths) == 0 {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	return append(errs, rules.EachPtr(h.Paths, p, l.validateHTTPPath)...)
}

func (l leniency) validateHTTPPath(h *networkingv1.HTTPIngressPath, p *field.Path) field.ErrorList {
	if h.PathType == nil {
		return field.ErrorList{field.Required(p.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	absolute := strings.HasPrefix(h.Path, "/")
	switch *h.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		errs = rules.InvalidIf(errs, !absolute, p.Child("path"), h.Path, "must be an absolute path")
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(h.Path, part) {
				errs = append(errs, field.Invalid(p.Child("path"), h.Path, fmt.Sprintf("must not contain '%s'", part)))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(h.Path, end) {
				errs = append(errs, field.Invalid(p.Child("path"), h.Path, fmt.Sprintf("cannot end with '%s'", end)))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		errs = rules.InvalidIf(errs, h.Path != "" && !absolute, p.Child("path"), h.Path, "must be an absolute path")
	default:
		errs = append(errs, field.NotSupported(p.Child("pathType"), *h.PathType,
			[]networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix}))
	}
	return append(errs, l.validateBackend(&h.Backend, p.Child("backend"))...)
}

func (l leniency) validateBackend(b *networkingv1.IngressBackend, p *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(p, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return validateReference(b.Resource, p.Child("resource"), l.now)
	case b.Service == nil:
		return field.ErrorList{field.Invalid(p, "", "resource or service backend is required")}
	}
	var errs field.ErrorList
	service := p.Child("service")
	switch {
	case b.Service.Name == "":
		errs = append(errs, field.Required(service.Child("name"), ""))
	case l.digitFirst:
		errs = append(errs, rules.Label(b.Service.Name, service.Child("name"))...)
	default:
		errs = append(errs, rules.ServiceLabel(b.Service.Name, service.Child("name"))...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(p, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, rules.Messages(service.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, rules.Messages(service.Child("port", "number"), port.Number, validation.IsValidPortNum(int(port.Number)))...)
	default:
		errs = append(errs, field.Required(p, "port name or number is required"))
	}
	return errs
}

// now are the rules of releases after 1.32.
func validateReference(r *corev1.TypedLocalObjectReference, p *field.Path, now bool) field.ErrorList {
	errs := rules.Optional(r.APIGroup, p.Child("apiGroup"), rules.Subdomain)
	errs = append(errs, validateSegment(r.Kind, "kind", p, now)...)
	return append(errs, validateSegment(r.Name, "name", p, now)...)
}

func validateSegment(v, name string, p *field.Path, now bool) field.ErrorList {
	if v == "" {
		if now {
			return field.ErrorList{field.Required(p.Child(name), "")}
		}
		return field.ErrorList{field.Required(p.Child(name), name+" is required")}
	}
	return rules.Messages(p.Child(name), v, path.IsValidPathSegmentName(v))
}

func (l leniency) validateStatus(obj, old *networkingv1.Ingress) field.ErrorList {
	addresses := rules.Addresses{Strict: l.strict}
	if l.strict {
		var had []string
		for _, a := range old.Status.LoadBalancer.Ingress {
			had = append(had, a.IP)
		}
		addresses.Kept = rules.In(had)
	}
	p := field.NewPath("status", "loadBalancer", "ingress")
	return rules.EachPtr(obj.Status.LoadBalancer.Ingress, p, func(a *networkingv1.IngressLoadBalancerIngress, at *field.Path) (errs field.ErrorList) {
		if a.IP != "" {
			errs = append(errs, addresses.IP(a.IP, at.Child("ip"))...)
		}
		if a.Hostname == "" {
			return errs
		}
		name := at.Child("hostname")
		errs = append(errs, rules.Subdomain(a.Hostname, name)...)
		return rules.InvalidIf(errs, rules.IsIP(a.Hostname), name, a.Hostname, "must be a DNS name, not an IP address")
	})
}

func ingressWarnings(i, old *networkingv1.Ingress) []string {
	if _, ok := i.Annotations[classAnnotation]; !ok || old != nil || i.Spec.IngressClassName != nil {
		return nil
	}
	return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", classAnnotation)}
}
