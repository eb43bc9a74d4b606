package networking

import (
	"net/netip"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// maxRanges is one of each family.
const maxRanges = 2

// ServiceCIDR returns the strategy of ServiceCIDRs. As on a stock server, writes of the object
// change its status too, unless a gate prevents it.
func ServiceCIDR(on kinds.Feature) kinds.Strategy {
	now, wiped := on.Has(release.KindRules133), on("ServiceCIDRStatusFieldWiping")
	s := kinds.Typed[*networkingv1.ServiceCIDR]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         kinds.WholeMeta132(on),
		Validate: func(c *networkingv1.ServiceCIDR) field.ErrorList {
			if now {
				return validateRanges(c.Spec.CIDRs, c.Spec)
			}
			return validateServiceCIDR(c)
		},
		ValidateUpdate: func(c, old *networkingv1.ServiceCIDR) field.ErrorList {
			if now {
				return validateRangesUpdate(&c.Spec, &old.Spec)
			}
			return append(validateServiceCIDR(c), rules.Immutable(c.Spec.CIDRs, old.Spec.CIDRs, field.NewPath("spec", "cidrs"))...)
		},
		UnconditionalUpdate: true,
		Status: &kinds.Status[*networkingv1.ServiceCIDR]{
			ByCreate: !wiped, ByUpdate: !wiped,
			Prepare: func(c, old *networkingv1.ServiceCIDR) {
				metav1.ResetObjectMetaForStatus(&c.ObjectMeta, &old.ObjectMeta)
			},
		},
	}.Strategy()
	if now {
		s.Status.ResetFields = []string{"metadata", "spec"}
	}
	return s
}

// ServiceCIDRColumns is their Table form.
var ServiceCIDRColumns = columns.Of(
	func(c *networkingv1.ServiceCIDR, now time.Time) []any {
		return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), columns.Since(c.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("CIDRs", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]),
	columns.Age(),
)

func validateRanges(cidrs []string, spec networkingv1.ServiceCIDRSpec) field.ErrorList {
	p := field.NewPath("spec", "cidrs")
	switch {
	case len(cidrs) == 0:
		return field.ErrorList{field.Required(p, "at least one CIDR required")}
	case len(cidrs) > maxRanges:
		return field.ErrorList{field.Invalid(p, rules.Shown(spec), "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, text := range cidrs {
		errs = append(errs, validation.IsValidCIDR(p.Index(i), text)...)
	}
	if len(cidrs) == maxRanges {
		family := netutils.IPFamilyOfCIDRString(cidrs[0])
		twice := family == netutils.IPFamilyOfCIDRString(cidrs[1]) && family != netutils.IPFamilyUnknown
		errs = rules.InvalidIf(errs, twice, p, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
	}
	return errs
}

// validateRangesUpdate lets a second range be added to the first, and nothing else change.
func validateRangesUpdate(s, old *networkingv1.ServiceCIDRSpec) field.ErrorList {
	p := field.NewPath("spec", "cidrs")
	var errs field.ErrorList
	kept := func(i int) {
		errs = rules.InvalidIf(errs, s.CIDRs[i] != old.CIDRs[i], p.Index(i), s.CIDRs[i], apivalidation.FieldImmutableErrorMsg)
	}
	switch {
	case len(s.CIDRs) == len(old.CIDRs):
		for i := range s.CIDRs {
			kept(i)
		}
	case len(old.CIDRs) == 1 && len(s.CIDRs) == maxRanges:
		kept(0)
		errs = append(errs, validateRanges(s.CIDRs, *s)...)
	default:
		errs = append(errs, field.Invalid(p, s.CIDRs, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	p, cidrs := field.NewPath("spec", "cidrs"), c.Spec.CIDRs
	switch {
	case len(cidrs) == 0:
		return field.ErrorList{field.Required(p, "at least one CIDR required")}
	case len(cidrs) > maxRanges:
		return field.ErrorList{field.Invalid(p, rules.Shown(c.Spec), "may only hold up to 2 values")}
	case len(cidrs) == maxRanges:
		if dual, err := netutils.IsDualStackCIDRStrings(cidrs); err != nil || !dual {
			return field.ErrorList{field.Invalid(p, rules.Shown(c.Spec), "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")}
		}
	}
	var errs field.ErrorList
	for i, text := range cidrs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, field.Invalid(p.Index(i), text, err.Error()))
			continue
		}
		errs = rules.InvalidIf(errs, prefix.Addr() != prefix.Masked().Addr(), p.Index(i), text, "wrong CIDR format, IP doesn't match network IP address")
		errs = rules.InvalidIf(errs, prefix.String() != text, p.Index(i), text, "CIDR not in RFC 5952 canonical format")
	}
	return errs
}
