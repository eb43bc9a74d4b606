package core

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Endpoints returns the strategy of Endpoints.
func Endpoints(on kinds.Feature) kinds.Strategy {
	now, addresses := on.Has(release.KindRules133), rules.Addresses{Strict: on("StrictIPCIDRValidation")}
	return kinds.Typed[*corev1.Endpoints]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default:      defaultEndpoints,
		Validate:     func(e *corev1.Endpoints) field.ErrorList { return validateEndpoints(e, addresses) },
		ValidateUpdate: func(e, old *corev1.Endpoints) field.ErrorList {
			errs := validateEndpoints(e, addresses)
			if now && len(errs) > 0 && rules.Same(e.Subsets, old.Subsets) {
				return nil // the stored object may be invalid
			}
			return errs
		},
		Warnings: func(e, _ *corev1.Endpoints) []string {
			if !now || e.Labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
				return nil
			}
			return endpointsWarnings(e)
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
	}.Strategy()
}

// EndpointsColumns is their Table form.
var EndpointsColumns = columns.Of(func(e *corev1.Endpoints, now time.Time) []any {
	return []any{e.Name, endpointsCell(e), columns.Since(e.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]), columns.Age())

// shownEndpoints bounds how many addresses the Table form lists.
const shownEndpoints = 3

func endpointsCell(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return "<none>"
	}
	var shown []string
	count := 0
	add := func(s string) {
		if count++; count <= shownEndpoints {
			shown = append(shown, s)
		}
	}
	for i := range e.Subsets {
		s := &e.Subsets[i]
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				add(a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				add(net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	list := strings.Join(shown, ",")
	if count > shownEndpoints {
		return fmt.Sprintf("%s + %d more...", list, count-shownEndpoints)
	}
	return list
}

func defaultEndpoints(e *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			if p := &e.Subsets[i].Ports[j]; p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
		}
	}
}

// endpointsWarnings returns warnings about addresses.
func endpointsWarnings(e *corev1.Endpoints) []string {
	var out []string
	each := func(list []corev1.EndpointAddress, p *field.Path) {
		for i := range list {
			out = append(out, rules.IPWarnings(list[i].IP, p.Index(i).Child("ip"))...)
		}
	}
	for i := range e.Subsets {
		p := field.NewPath("subsets").Index(i)
		each(e.Subsets[i].Addresses, p.Child("addresses"))
		each(e.Subsets[i].NotReadyAddresses, p.Child("notReadyAddresses"))
	}
	return out
}

func validateEndpoints(e *corev1.Endpoints, addresses rules.Addresses) field.ErrorList {
	var errs field.ErrorList
	address := func(a *corev1.EndpointAddress, path *field.Path) field.ErrorList {
		return validateEndpointAddress(a, path, addresses)
	}
	for i := range rules.Until(&errs, e.Subsets) {
		s, path := &e.Subsets[i], field.NewPath("subsets").Index(i)
		errs = rules.RequiredIf(errs, len(s.Addresses)+len(s.NotReadyAddresses) == 0, path, "must specify `addresses` or `notReadyAddresses`")
		errs = append(errs, rules.EachPtr(s.Addresses, path.Child("addresses"), address)...)
		errs = append(errs, rules.EachPtr(s.NotReadyAddresses, path.Child("notReadyAddresses"), address)...)
		for j := range rules.Until(&errs, s.Ports) {
			errs = append(errs, validateEndpointPort(&s.Ports[j], len(s.Ports) > 1, path.Child("ports").Index(j))...)
		}
	}
	return errs
}

func validateEndpointAddress(a *corev1.EndpointAddress, path *field.Path, addresses rules.Addresses) field.ErrorList {
	errs := addresses.IP(a.IP, path.Child("ip"))
	if a.Hostname != "" {
		errs = append(errs, rules.Label(a.Hostname, path.Child("hostname"))...)
	}
	errs = append(errs, rules.Optional(a.NodeName, path.Child("nodeName"), rules.Subdomain)...)
	return append(errs, rules.RoutableIP(a.IP, path.Child("ip"))...)
}

func validateEndpointPort(p *corev1.EndpointPort, named bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Name != "" {
		errs = append(errs, rules.Label(p.Name, path.Child("name"))...)
	} else if named {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, rules.Messages(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, validateProtocol(p.Protocol, path.Child("protocol"))...)
	return append(errs, rules.Optional(p.AppProtocol, path.Child("appProtocol"), rules.QualifiedName)...)
}

func validateProtocol(p corev1.Protocol, path *field.Path) field.ErrorList {
	if p == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rules.OneOf(p, path, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}
