package networking

import (
	"net/netip"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// IPAddress returns the strategy of IPAddresses. The name is the address.
func IPAddress(on kinds.Feature) kinds.Strategy {
	name := validateAddressName
	if on.Has(release.KindRules133) {
		name = validateStrictName
	}
	return kinds.Typed[*networkingv1.IPAddress]{
		ValidateName: name,
		Meta:         &kinds.WholeMeta,
		NameIsBase:   true,
		Validate:     validateIPAddress,
		ValidateUpdate: func(a, old *networkingv1.IPAddress) field.ErrorList {
			return append(validateIPAddress(a), rules.Immutable(a.Spec.ParentRef, old.Spec.ParentRef, field.NewPath("spec", "parentRef"))...)
		},
		UnconditionalUpdate: true,
	}.Strategy()
}

// IPAddressColumns is their Table form. Its rows have an age, which is not among its columns, as on
// a stock server.
var IPAddressColumns = columns.Of(
	func(a *networkingv1.IPAddress, now time.Time) []any {
		parent := "<none>"
		if r := a.Spec.ParentRef; r != nil {
			parent = strings.ToLower(schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()) + "/"
			if r.Namespace != "" {
				parent += r.Namespace + "/"
			}
			parent += r.Name
		}
		return []any{a.Name, parent, columns.Since(a.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("ParentRef", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"]),
)

// validateAddressName requires the canonical spelling of an address.
func validateAddressName(name string, _ bool) []string {
	addr, err := netip.ParseAddr(name)
	switch {
	case err != nil:
		return []string{err.Error()}
	case addr.String() != name:
		return []string{"must be a canonical format IP address"}
	}
	return nil
}

// validateStrictName does so in the words of releases after 1.32.
func validateStrictName(name string, _ bool) []string {
	var messages []string
	for _, err := range validation.IsValidIP(nil, name) {
		messages = append(messages, err.Detail)
	}
	return messages
}

func validateIPAddress(a *networkingv1.IPAddress) field.ErrorList {
	p, r := field.NewPath("spec", "parentRef"), a.Spec.ParentRef
	if r == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	if r.Group != "" {
		errs = append(errs, rules.Messages(p.Child("group"), r.Group, validation.IsDNS1123Subdomain(r.Group))...)
	}
	segment := func(name, value string, required bool) {
		if value != "" {
			errs = append(errs, rules.Messages(p.Child(name), value, path.IsValidPathSegmentName(value))...)
		} else if required {
			errs = append(errs, field.Required(p.Child(name), ""))
		}
	}
	segment("resource", r.Resource, true)
	segment("name", r.Name, true)
	segment("namespace", r.Namespace, false)
	return errs
}
