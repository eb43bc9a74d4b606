package networking

import (
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// NetworkPolicy is how NetworkPolicies are written.
var NetworkPolicy = kinds.Typed[*networkingv1.NetworkPolicy]{
	ValidateName:     apivalidation.NameIsDNSSubdomain,
	Meta:             &kinds.WholeMeta,
	Default:          defaultNetworkPolicy,
	PrepareForCreate: func(n *networkingv1.NetworkPolicy) { n.Generation = 1 },
	PrepareForUpdate: func(n, old *networkingv1.NetworkPolicy) {
		n.Generation = old.Generation
		// Here, unlike elsewhere, an empty list is a change from none.
		if !reflect.DeepEqual(n.Spec, old.Spec) {
			n.Generation++
		}
	},
	Validate: func(obj *networkingv1.NetworkPolicy) field.ErrorList {
		return validateNetworkPolicy(&obj.Spec, false)
	},
	ValidateUpdate: func(n, old *networkingv1.NetworkPolicy) field.ErrorList {
		return rules.Twice(validateNetworkPolicy(&n.Spec, rules.SelectorInvalid(&old.Spec.PodSelector)))
	},
	UnconditionalUpdate: true,
}.Strategy()

// firstWords makes the words of extensions/v1beta1, which a stock server shows, of those of networking/v1
// (TestFirstWords compares).
var firstWords = strings.NewReplacer("podSelector selects", "Selects", ". The array", ".  The array", ". In this case", ".  In this case")

// FirstWords does so.
func FirstWords(text string) string { return firstWords.Replace(text) }

// NetworkPolicyColumns is their Table form.
var NetworkPolicyColumns = columns.Of(
	func(n *networkingv1.NetworkPolicy, now time.Time) []any {
		return []any{n.Name, metav1.FormatLabelSelector(&n.Spec.PodSelector), columns.Since(n.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Pod-Selector", firstWords.Replace(networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"])),
	columns.Age(),
)

func defaultNetworkPolicy(obj *networkingv1.NetworkPolicy) {
	s := &obj.Spec
	for i := range s.Ingress {
		defaultPorts(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		defaultPorts(s.Egress[i].Ports)
	}
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

func defaultPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		rules.DefaultTo(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// keepInvalid tolerates label values in selectors that are not valid.
func validateNetworkPolicy(s *networkingv1.NetworkPolicySpec, keepInvalid bool) field.ErrorList {
	p := field.NewPath("spec")
	errs := rules.LooseSelector(&s.PodSelector, keepInvalid, p.Child("podSelector"))
	for i := range s.Ingress {
		at := p.Child("ingress").Index(i)
		errs = append(errs, validatePorts(s.Ingress[i].Ports, at.Child("ports"))...)
		errs = append(errs, validatePeers(s.Ingress[i].From, at.Child("from"), keepInvalid)...)
	}
	for i := range s.Egress {
		at := p.Child("egress").Index(i)
		errs = append(errs, validatePorts(s.Egress[i].Ports, at.Child("ports"))...)
		errs = append(errs, validatePeers(s.Egress[i].To, at.Child("to"), keepInvalid)...)
	}
	types := p.Child("policyTypes")
	if len(s.PolicyTypes) > 2 {
		return append(errs, field.Invalid(types, rules.Shown(s.PolicyTypes), "may not specify more than two policyTypes"))
	}
	for i, t := range s.PolicyTypes {
		errs = append(errs, rules.OneOf(t, types.Index(i), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return errs
}

func validatePorts(ports []networkingv1.NetworkPolicyPort, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	return append(errs, rules.EachPtr(ports, p, validatePort)...)
}

func validatePort(n *networkingv1.NetworkPolicyPort, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n.Protocol != nil {
		errs = rules.OneOf(*n.Protocol, p.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
	end := p.Child("endPort")
	switch {
	case n.Port == nil:
		errs = rules.InvalidIf(errs, n.EndPort != nil, end, n.EndPort, "may not be specified when `port` is not specified")
	case n.Port.Type == intstr.Int:
		errs = append(errs, rules.Messages(p.Child("port"), n.Port.IntVal, validation.IsValidPortNum(int(n.Port.IntVal)))...)
		if n.EndPort == nil {
			break
		}
		if *n.EndPort < n.Port.IntVal {
			errs = append(errs, field.Invalid(end, n.Port.IntVal, "must be greater than or equal to `port`"))
		}
		errs = append(errs, rules.Messages(end, *n.EndPort, validation.IsValidPortNum(int(*n.EndPort)))...)
	default:
		errs = rules.InvalidIf(errs, n.EndPort != nil, end, n.EndPort, "may not be specified when `port` is non-numeric")
		errs = append(errs, rules.Messages(p.Child("port"), n.Port.StrVal, validation.IsValidPortName(n.Port.StrVal))...)
	}
	return errs
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, p *field.Path, keepInvalid bool) field.ErrorList {
	var errs field.ErrorList
	for i := range peers {
		peer, at := &peers[i], p.Index(i)
		if peer.PodSelector != nil {
			errs = append(errs, rules.LooseSelector(peer.PodSelector, keepInvalid, at.Child("podSelector"))...)
		}
		if peer.NamespaceSelector != nil {
			errs = append(errs, rules.LooseSelector(peer.NamespaceSelector, keepInvalid, at.Child("namespaceSelector"))...)
		}
		errs = append(errs, rules.OptionalPtr(peer.IPBlock, at.Child("ipBlock"), validateBlock)...)
		selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case !selects && peer.IPBlock == nil:
			errs = append(errs, field.Required(at, "must specify a peer"))
		case selects && peer.IPBlock != nil:
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		}
	}
	return errs
}

func validateBlock(b *networkingv1.IPBlock, p *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(p.Child("cidr"), "")}
	}
	outer, errs := rules.CIDR(b.CIDR, p.Child("cidr"))
	if outer == nil {
		return errs
	}
	for i, except := range b.Except {
		at := p.Child("except").Index(i)
		inner, bad := rules.CIDR(except, at)
		if inner == nil {
			errs = append(errs, bad...)
			continue
		}
		outerBits, _ := outer.Mask.Size()
		innerBits, _ := inner.Mask.Size()
		errs = rules.InvalidIf(errs, !outer.Contains(inner.IP) || outerBits >= innerBits, at, except, "must be a strict subset of `cidr`")
	}
	return errs
}
