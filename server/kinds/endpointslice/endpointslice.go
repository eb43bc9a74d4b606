// Package endpointslice holds the strategy of EndpointSlices.
package endpointslice

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxTopology  = 16
	maxPorts     = 20000
	maxZoneHints = 8
	maxNodeHints = 8
)

// EndpointSlice returns the strategy of EndpointSlices.
func EndpointSlice(on kinds.Feature) kinds.Strategy {
	r := sliceRules{now: on.Has(release.KindRules133), nodes: on("PreferSameTrafficDistribution"), addresses: rules.Addresses{Strict: on("StrictIPCIDRValidation")}}
	return kinds.Typed[*discoveryv1.EndpointSlice]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.AsNewMeta,
		Default: func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				rules.DefaultTo(&s.Ports[i].Name, "")
				rules.DefaultTo(&s.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		},
		PrepareForCreate: func(s *discoveryv1.EndpointSlice) {
			s.Generation = 1
			r.dropNodes(s, &discoveryv1.EndpointSlice{})
			dropTopology(s)
		},
		PrepareForUpdate: func(s, old *discoveryv1.EndpointSlice) {
			r.dropNodes(s, old)
			prepareUpdate(s, old)
		},
		Validate: func(s *discoveryv1.EndpointSlice) field.ErrorList { return r.validate(s, nil) },
		ValidateUpdate: func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			return append(r.validate(s, old), rules.Immutable(s.AddressType, old.AddressType, field.NewPath("addressType"))...)
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
			var out []string
			if old == nil && obj.AddressType == discoveryv1.AddressTypeFQDN {
				out = append(out, "spec.addressType: FQDN endpoints are deprecated")
			}
			if r.now {
				out = append(out, addressWarnings(obj)...)
			}
			return out
		},
		UnconditionalUpdate: true,
	}.Strategy()
}

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

// dropTopology removes fields that only older versions could set.
func dropTopology(s *discoveryv1.EndpointSlice) {
	for i := range s.Endpoints {
		s.Endpoints[i].DeprecatedTopology = nil
	}
}

// sliceRules are the rules that depend on the release.
type sliceRules struct {
	now       bool // those after 1.32
	nodes     bool // hints name nodes, too
	addresses rules.Addresses
}

// dropNodes removes the nodes that endpoints are meant for, unless old has some.
func (r sliceRules) dropNodes(s, old *discoveryv1.EndpointSlice) {
	if r.nodes {
		return
	}
	for i := range old.Endpoints {
		if h := old.Endpoints[i].Hints; h != nil && h.ForNodes != nil {
			return
		}
	}
	for i := range s.Endpoints {
		if h := s.Endpoints[i].Hints; h != nil {
			h.ForNodes = nil
		}
	}
}

// addressWarnings are warnings about addresses, apart from those that the controllers write.
func addressWarnings(s *discoveryv1.EndpointSlice) []string {
	switch s.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return nil
	}
	var out []string
	for i := range s.Endpoints {
		for k, a := range s.Endpoints[i].Addresses {
			out = append(out, rules.IPWarnings(a, field.NewPath("endpoints").Index(i).Child("addresses").Index(k))...)
		}
	}
	return out
}

// validate checks a slice that replaces old, which is nil on create.
func (r sliceRules) validate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	errs := rules.RequiredOneOf(s.AddressType, field.NewPath("addressType"), discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	ofPorts := validatePorts(s.Ports, field.NewPath("ports"))
	ofEndpoints := r.validateEndpoints(s.Endpoints, s.AddressType, field.NewPath("endpoints"))
	if !r.now {
		return append(append(errs, ofEndpoints...), ofPorts...)
	}
	errs = append(errs, ofPorts...)
	if len(ofEndpoints) > 0 && old != nil && rules.Same(old.Endpoints, s.Endpoints) {
		return errs // the stored object may be invalid
	}
	return append(errs, ofEndpoints...)
}

func (r sliceRules) validateEndpoints(list []discoveryv1.Endpoint, t discoveryv1.AddressType, p *field.Path) field.ErrorList {
	if len(list) > maxEndpoints {
		return field.ErrorList{field.TooMany(p, len(list), maxEndpoints)}
	}
	return rules.EachPtr(list, p, func(e *discoveryv1.Endpoint, at *field.Path) field.ErrorList { return r.validateEndpoint(e, t, at) })
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

// validateAddress checks an address at p in the list at all.
func (r sliceRules) validateAddress(address, family string, all, p *field.Path) field.ErrorList {
	if !r.now {
		return append(validateFamily(address, family, p), rules.RoutableIP(address, p)...)
	}
	var errs field.ErrorList
	if family == "IPv4" {
		errs = r.addresses.IP(address, p)
	} else {
		errs = validation.IsValidIP(p, address)
	}
	if len(errs) > 0 {
		return errs
	}
	ip := netutils.ParseIPSloppy(address)
	errs = rules.InvalidIf(errs, (ip.To4() != nil) != (family == "IPv4"), all, address, "must be an "+family+" address")
	return append(errs, rules.RoutableIP(address, p)...)
}

func (r sliceRules) validateEndpoint(e *discoveryv1.Endpoint, t discoveryv1.AddressType, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := p.Child("addresses")
	switch n := len(e.Addresses); {
	case n == 0:
		errs = append(errs, field.Required(at, "must contain at least 1 address"))
	case n > maxAddresses:
		errs = append(errs, field.TooMany(at, n, maxAddresses))
	}
	errs = append(errs, rules.Each(e.Addresses, at, func(a string, each *field.Path) field.ErrorList {
		switch t {
		case discoveryv1.AddressTypeIPv4:
			return r.validateAddress(a, "IPv4", at, each)
		case discoveryv1.AddressTypeIPv6:
			return r.validateAddress(a, "IPv6", at, each)
		case discoveryv1.AddressTypeFQDN:
			return validation.IsFullyQualifiedDomainName(each, a)
		}
		return nil
	})...)
	errs = append(errs, rules.Optional(e.NodeName, p.Child("nodeName"), rules.Subdomain)...)
	topology := p.Child("deprecatedTopology")
	if n := len(e.DeprecatedTopology); n > maxTopology {
		errs = append(errs, field.TooMany(topology, n, maxTopology))
	}
	errs = append(errs, rules.Labels(e.DeprecatedTopology, topology)...)
	errs = append(errs, rules.Optional(e.Hostname, p.Child("hostname"), rules.Label)...)
	return append(errs, rules.OptionalPtr(e.Hints, p.Child("hints"), validateHints)...)
}

func validateHints(h *discoveryv1.EndpointHints, p *field.Path) field.ErrorList {
	nodes := p.Child("forNodes")
	p = p.Child("forZones")
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
	if n := len(h.ForNodes); n > maxNodeHints {
		return append(errs, field.TooMany(nodes, n, maxNodeHints))
	}
	clear(seen)
	for i, n := range h.ForNodes {
		at := nodes.Index(i).Child("name")
		errs = rules.DuplicateIf(errs, seen[n.Name], at, n.Name)
		seen[n.Name] = true
		errs = append(errs, rules.Messages(at, n.Name, apivalidation.NameIsDNSSubdomain(n.Name, false))...)
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
