// Package endpointslice holds the strategy of EndpointSlices.
package endpointslice

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxTopology  = 16
	maxPorts     = 20000
	maxZoneHints = 8
)

// EndpointSlice is how EndpointSlices are written.
var EndpointSlice = kinds.Typed[*discoveryv1.EndpointSlice]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default: func(s *discoveryv1.EndpointSlice) {
		for i := range s.Ports {
			rules.DefaultTo(&s.Ports[i].Name, "")
			rules.DefaultTo(&s.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	},
	PrepareForCreate: func(s *discoveryv1.EndpointSlice) {
		s.Generation = 1
		dropTopology(s)
	},
	PrepareForUpdate: prepareUpdate,
	Validate:         validateSlice,
	ValidateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
		return append(validateSlice(s), rules.Immutable(s.AddressType, old.AddressType, field.NewPath("addressType"))...)
	},
	Canonicalize: func(s *discoveryv1.EndpointSlice) {
		// Empty lists are stored as none.
		if len(s.Endpoints) == 0 {
			s.Endpoints = nil
		}
		if len(s.Ports) == 0 {
			s.Ports = nil
		}
	},
	Warnings: func(obj, old *discoveryv1.EndpointSlice) []string {
		if old == nil && obj.AddressType == discoveryv1.AddressTypeFQDN {
			return []string{"spec.addressType: FQDN endpoints are deprecated"}
		}
		return nil
	},
	UnconditionalUpdate: true,
}.Strategy()

// EndpointSliceColumns is their Table form.
var EndpointSliceColumns = columns.Of(
	func(s *discoveryv1.EndpointSlice, now time.Time) []any {
		return []any{s.Name, string(s.AddressType), ports(s), addresses(s), columns.Since(s.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("AddressType", discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"]),
	columns.Text("Ports", discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"]),
	columns.Text("Endpoints", discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"]),
	columns.Age(),
)

// first shows the first three of a list.
func first(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:most], ","), len(list)-most)
	}
	if text := strings.Join(list, ","); text != "" {
		return text
	}
	return "<unset>" // also for a single port without number and name
}

func ports(s *discoveryv1.EndpointSlice) string {
	var list []string
	for i := range s.Ports {
		switch p := &s.Ports[i]; {
		case p.Port != nil:
			list = append(list, fmt.Sprint(*p.Port))
		case p.Name != nil:
			list = append(list, *p.Name)
		default:
			list = append(list, "*")
		}
	}
	return first(list)
}

func addresses(s *discoveryv1.EndpointSlice) string {
	var list []string
	for i := range s.Endpoints {
		list = append(list, s.Endpoints[i].Addresses...)
	}
	return first(list)
}

// The generation counts labels too, but no other metadata.
func prepareUpdate(s, old *discoveryv1.EndpointSlice) {
	s.Generation = old.Generation
	endpoints := rules.Same(s.Endpoints, old.Endpoints)
	if !endpoints || s.AddressType != old.AddressType || !rules.Same(s.Ports, old.Ports) || !rules.Same(s.Labels, old.Labels) {
		s.Generation++
	}
	if !endpoints {
		dropTopology(s)
	}
}

// dropTopology removes what only older versions could set.
func dropTopology(s *discoveryv1.EndpointSlice) {
	for i := range s.Endpoints {
		s.Endpoints[i].DeprecatedTopology = nil
	}
}

func validateSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	if p := field.NewPath("addressType"); s.AddressType == "" {
		errs = append(errs, field.Required(p, ""))
	} else {
		errs = append(errs, rules.OneOf(s.AddressType, p, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)...)
	}
	errs = append(errs, validateEndpoints(s.Endpoints, s.AddressType, field.NewPath("endpoints"))...)
	return append(errs, validatePorts(s.Ports, field.NewPath("ports"))...)
}

func validateEndpoints(list []discoveryv1.Endpoint, t discoveryv1.AddressType, p *field.Path) field.ErrorList {
	if len(list) > maxEndpoints {
		return field.ErrorList{field.TooMany(p, len(list), maxEndpoints)}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, validateEndpoint(&list[i], t, p.Index(i))...)
	}
	return errs
}

// validateFamily checks that an address is one of a family, IPv4 or IPv6. An IPv4 address written as
// an IPv6 one is of the family IPv4.
func validateFamily(address, family string, p *field.Path) field.ErrorList {
	ip := netutils.ParseIPSloppy(address)
	if ip == nil || (ip.To4() != nil) != (family == "IPv4") {
		return field.ErrorList{field.Invalid(p, address, "must be a valid "+family+" address")}
	}
	return nil
}

func validateEndpoint(e *discoveryv1.Endpoint, t discoveryv1.AddressType, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := p.Child("addresses")
	switch n := len(e.Addresses); {
	case n == 0:
		errs = append(errs, field.Required(at, "must contain at least 1 address"))
	case n > maxAddresses:
		errs = append(errs, field.TooMany(at, n, maxAddresses))
	}
	for i, a := range e.Addresses {
		switch t {
		case discoveryv1.AddressTypeIPv4:
			errs = append(errs, validateFamily(a, "IPv4", at.Index(i))...)
			errs = append(errs, validateEndpointIP(a, at.Index(i))...)
		case discoveryv1.AddressTypeIPv6:
			errs = append(errs, validateFamily(a, "IPv6", at.Index(i))...)
			errs = append(errs, validateEndpointIP(a, at.Index(i))...)
		case discoveryv1.AddressTypeFQDN:
			errs = append(errs, validation.IsFullyQualifiedDomainName(at.Index(i), a)...)
		}
	}
	errs = append(errs, rules.Optional(e.NodeName, p.Child("nodeName"), rules.Subdomain)...)
	topology := p.Child("deprecatedTopology")
	if n := len(e.DeprecatedTopology); n > maxTopology {
		errs = append(errs, field.TooMany(topology, n, maxTopology))
	}
	errs = append(errs, metavalidation.ValidateLabels(e.DeprecatedTopology, topology)...)
	errs = append(errs, rules.Optional(e.Hostname, p.Child("hostname"), rules.Label)...)
	return append(errs, rules.OptionalPtr(e.Hints, p.Child("hints", "forZones"), validateHints)...)
}

// validateEndpointIP refuses addresses that say nothing about where to send.
func validateEndpointIP(v string, p *field.Path) field.ErrorList {
	ip := netutils.ParseIPSloppy(v)
	if ip == nil {
		return field.ErrorList{field.Invalid(p, v, "must be a valid IP address")}
	}
	var errs field.ErrorList
	refuse := func(bad bool, message string) {
		errs = rules.InvalidIf(errs, bad, p, v, message)
	}
	refuse(ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", v))
	refuse(ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	refuse(ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	refuse(ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	return errs
}

func validateHints(h *discoveryv1.EndpointHints, p *field.Path) field.ErrorList {
	if n := len(h.ForZones); n > maxZoneHints {
		return field.ErrorList{field.TooMany(p, n, maxZoneHints)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, z := range h.ForZones {
		errs = rules.DuplicateIf(errs, seen[z.Name], p.Index(i).Child("name"), z.Name)
		seen[z.Name] = true
		errs = append(errs, rules.Messages(p.Index(i).Child("name"), z.Name, validation.IsValidLabelValue(z.Name))...)
	}
	return errs
}

var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func validatePorts(list []discoveryv1.EndpointPort, p *field.Path) field.ErrorList {
	if len(list) > maxPorts {
		return field.ErrorList{field.TooMany(p, len(list), maxPorts)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range list {
		port, at := &list[i], p.Index(i)
		name := rules.Value(port.Name)
		if name != "" {
			errs = append(errs, rules.Label(name, at.Child("name"))...)
		}
		errs = rules.DuplicateIf(errs, seen[name], at.Child("name"), name)
		seen[name] = true
		if port.Protocol == nil {
			errs = append(errs, field.Required(at.Child("protocol"), ""))
		} else {
			errs = append(errs, rules.OneOf(*port.Protocol, at.Child("protocol"), protocols...)...)
		}
		errs = append(errs, rules.Optional(port.AppProtocol, at.Child("appProtocol"), rules.QualifiedName)...)
	}
	return errs
}
