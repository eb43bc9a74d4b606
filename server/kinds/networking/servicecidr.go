package networking

import (
	"net/netip"
	"strings"
	"time"

	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// maxRanges is one of each family.
const maxRanges = 2

// ServiceCIDR is how ServiceCIDRs are written. As on a stock server, writes of the object
// change its status too.
var ServiceCIDR = kinds.Typed[*networkingv1beta1.ServiceCIDR]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Validate:     validateServiceCIDR,
	ValidateUpdate: func(c, old *networkingv1beta1.ServiceCIDR) field.ErrorList {
		return append(validateServiceCIDR(c), rules.Immutable(c.Spec.CIDRs, old.Spec.CIDRs, field.NewPath("spec", "cidrs"))...)
	},
	UnconditionalUpdate: true,
	Status:              &kinds.Status[*networkingv1beta1.ServiceCIDR]{ByCreate: true, ByUpdate: true},
}.Strategy()

// ServiceCIDRColumns is their Table form.
var ServiceCIDRColumns = columns.Of(
	func(c *networkingv1beta1.ServiceCIDR, now time.Time) []any {
		return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), columns.Since(c.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("CIDRs", networkingv1beta1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]),
	columns.Age(),
)

func validateServiceCIDR(c *networkingv1beta1.ServiceCIDR) field.ErrorList {
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
