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
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// NetworkPolicy returns the strategy of NetworkPolicies.
func NetworkPolicy(on kinds.Feature) kinds.Strategy {
	r := policyRules{now: on.Has(release.KindRules133), addresses: rules.Addresses{Strict: on("StrictIPCIDRValidation")}}
	return kinds.Typed[*networkingv1.NetworkPolicy]{
		ValidateName:     apivalidation.NameIsDNSSubdomain,
		Meta:             kinds.WholeMeta132(on),
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
			return r.validate(&obj.Spec)
		},
		ValidateUpdate: func(n, old *networkingv1.NetworkPolicy) field.ErrorList {
			r := r
			r.keepInvalid = rules.SelectorInvalid(&old.Spec.PodSelector)
			if r.addresses.Strict {
				r.addresses.Kept = rules.In(blocksOf(&old.Spec))
			}
			if errs := r.validate(&n.Spec); r.now {
				return errs
			} else {
				return rules.Twice(errs)
			}
		},
		Warnings: func(n, _ *networkingv1.NetworkPolicy) []string {
			if !r.now {
				return nil
			}
			return policyWarnings(&n.Spec)
		},
		UnconditionalUpdate: true,
	}.Strategy()
}

// firstWords makes the descriptions of extensions/v1beta1, which a stock server shows, from those of
// networking/v1 (TestFirstWords compares them).
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

// policyRules are the rules that depend on the release, and on the old object.
type policyRules struct {
	now         bool // those after 1.32
	keepInvalid bool // tolerate label values in selectors that are not valid
	addresses   rules.Addresses
}

// eachBlock calls f for each block of addresses of a policy.
func eachBlock(s *networkingv1.NetworkPolicySpec, f func(*networkingv1.IPBlock, *field.Path)) {
	peers := func(list []networkingv1.NetworkPolicyPeer, p *field.Path) {
		for i := range list {
			if b := list[i].IPBlock; b != nil {
				f(b, p.Index(i).Child("ipBlock"))
			}
		}
	}
	for i := range s.Ingress {
		peers(s.Ingress[i].From, field.NewPath("spec", "ingress").Index(i).Child("from"))
	}
	for i := range s.Egress {
		peers(s.Egress[i].To, field.NewPath("spec", "egress").Index(i).Child("to"))
	}
}

// blocksOf returns all networks that a policy names.
func blocksOf(s *networkingv1.NetworkPolicySpec) []string {
	var list []string
	eachBlock(s, func(b *networkingv1.IPBlock, _ *field.Path) {
		list = append(append(list, b.CIDR), b.Except...)
	})
	return list
}

func policyWarnings(s *networkingv1.NetworkPolicySpec) []string {
	var out []string
	eachBlock(s, func(b *networkingv1.IPBlock, p *field.Path) {
		out = append(out, rules.CIDRWarnings(b.CIDR, p.Child("cidr"))...)
		for i, except := range b.Except {
			out = append(out, rules.CIDRWarnings(except, p.Child("except").Index(i))...)
		}
	})
	return out
}

func (r policyRules) validate(s *networkingv1.NetworkPolicySpec) field.ErrorList {
	p := field.NewPath("spec")
	errs := rules.LooseSelector(&s.PodSelector, r.keepInvalid, p.Child("podSelector"))
	errs = append(errs, rules.EachPtr(s.Ingress, p.Child("ingress"), func(rule *networkingv1.NetworkPolicyIngressRule, at *field.Path) field.ErrorList {
		errs := rules.EachPtr(rule.Ports, at.Child("ports"), validatePort)
		return append(errs, rules.EachPtr(rule.From, at.Child("from"), r.validatePeer)...)
	})...)
	errs = append(errs, rules.EachPtr(s.Egress, p.Child("egress"), func(rule *networkingv1.NetworkPolicyEgressRule, at *field.Path) field.ErrorList {
		errs := rules.EachPtr(rule.Ports, at.Child("ports"), validatePort)
		return append(errs, rules.EachPtr(rule.To, at.Child("to"), r.validatePeer)...)
	})...)
	types := p.Child("policyTypes")
	if len(s.PolicyTypes) > 2 {
		return append(errs, field.Invalid(types, rules.Shown(s.PolicyTypes), "may not specify more than two policyTypes"))
	}
	for i, t := range s.PolicyTypes {
		errs = append(errs, rules.OneOf(t, types.Index(i), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	return errs
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

func (r policyRules) validatePeer(peer *networkingv1.NetworkPolicyPeer, p *field.Path) field.ErrorList {
	errs := rules.LooseSelector(peer.PodSelector, r.keepInvalid, p.Child("podSelector"))
	errs = append(errs, rules.LooseSelector(peer.NamespaceSelector, r.keepInvalid, p.Child("namespaceSelector"))...)
	errs = append(errs, rules.OptionalPtr(peer.IPBlock, p.Child("ipBlock"), r.validateBlock)...)
	selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
	switch {
	case !selects && peer.IPBlock == nil:
		errs = append(errs, field.Required(p, "must specify a peer"))
	case selects && peer.IPBlock != nil:
		errs = append(errs, field.Forbidden(p, "may not specify both ipBlock and another peer"))
	}
	return errs
}

func (r policyRules) validateBlock(b *networkingv1.IPBlock, p *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(p.Child("cidr"), "")}
	}
	errs := r.addresses.CIDR(b.CIDR, p.Child("cidr"))
	_, outer, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return errs
	}
	outerBits, _ := outer.Mask.Size()
	return append(errs, rules.Each(b.Except, p.Child("except"), func(except string, at *field.Path) field.ErrorList {
		errs := r.addresses.CIDR(except, at)
		_, inner, err := netutils.ParseCIDRSloppy(except)
		if err != nil {
			return errs
		}
		innerBits, _ := inner.Mask.Size()
		return rules.InvalidIf(errs, !outer.Contains(inner.IP) || outerBits >= innerBits, at, except, "must be a strict subset of `cidr`")
	})...)
}
