package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Service returns the strategy of Services whose addresses and ports a hands out.
func Service(a *ServiceAllocator, on kinds.Feature) kinds.Strategy {
	r := serviceRules{now: on.Has(release.KindRules133), closest: on("PreferSameTrafficDistribution"), addresses: rules.Addresses{Strict: on("StrictIPCIDRValidation")}}
	name := apivalidation.NameIsDNS1035Label
	if on("RelaxedServiceNameValidation") {
		name = apivalidation.NameIsDNSLabel
	}
	claimsIn := ""
	if a != nil && a.ranges != nil {
		claimsIn = IPAddressStorage
	}
	return kinds.Typed[*corev1.Service]{
		Meta:                kinds.WholeMeta132(on),
		ValidateName:        name,
		Default:             defaultService,
		PrepareForUpdate:    prepareServiceUpdate,
		Validate:            func(s *corev1.Service) field.ErrorList { return r.validate(s, nil) },
		ValidateUpdate:      r.validateUpdate,
		Warnings:            r.warnings,
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		DeleteAlso:          "endpoints",
		Status:              &kinds.Status[*corev1.Service]{Validate: r.validateStatus, Warnings: r.statusWarnings},
		Allocate:            a,
		ClaimsIn:            claimsIn,
	}.Strategy()
}

// ServiceFields are the selectable fields of Services.
var ServiceFields = []kinds.SelectableField{
	{Label: "spec.clusterIP", Path: []string{"spec", "clusterIP"}},
	{Label: "spec.type", Path: []string{"spec", "type"}},
}

// ServiceColumns is their Table form.
var ServiceColumns = columns.Of(func(s *corev1.Service, now time.Time) []any {
	address := "<none>"
	if len(s.Spec.ClusterIPs) > 0 {
		address = s.Spec.ClusterIPs[0]
	}
	return []any{
		s.Name, string(s.Spec.Type), address, externalAddress(s), portsCell(s.Spec.Ports),
		columns.Since(s.CreationTimestamp, now), labels.FormatLabels(s.Spec.Selector),
	}
}, columns.Name(),
	columns.Text("Type", corev1.ServiceSpec{}.SwaggerDoc()["type"]),
	columns.Text("Cluster-IP", corev1.ServiceSpec{}.SwaggerDoc()["clusterIP"]),
	columns.Text("External-IP", corev1.ServiceSpec{}.SwaggerDoc()["externalIPs"]),
	columns.Text("Port(s)", corev1.ServiceSpec{}.SwaggerDoc()["ports"]),
	columns.Age(),
	columns.Wide(columns.Text("Selector", corev1.ServiceSpec{}.SwaggerDoc()["selector"])))

// externalAddress returns the addresses of a service outside the cluster.
func externalAddress(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		all := append(ingressAddresses(s), s.Spec.ExternalIPs...)
		if len(all) == 0 {
			return "<pending>"
		}
		return strings.Join(all, ",")
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		if len(s.Spec.ExternalIPs) > 0 {
			return strings.Join(s.Spec.ExternalIPs, ",")
		}
		return "<none>"
	}
	return "<unknown>"
}

// ingressAddresses lists the addresses of a load balancer, sorted, each once.
func ingressAddresses(s *corev1.Service) []string {
	var list []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if address := cmp.Or(in.IP, in.Hostname); address != "" {
			list = append(list, address)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func portsCell(ports []corev1.ServicePort) string {
	if len(ports) == 0 {
		return "<none>"
	}
	list := make([]string, len(ports))
	for i, p := range ports {
		if p.NodePort > 0 {
			list[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		} else {
			list[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		}
	}
	return strings.Join(list, ",")
}

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	spec.SessionAffinity = cmp.Or(spec.SessionAffinity, corev1.ServiceAffinityNone)
	defaultAffinity(spec)
	spec.Type = cmp.Or(spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		p.Protocol = cmp.Or(p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if isExternal(s) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	switch spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		rules.DefaultTo(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	rules.DefaultTo(&spec.AllocateLoadBalancerNodePorts, true)
	for i := range s.Status.LoadBalancer.Ingress {
		if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" {
			rules.DefaultTo(&in.IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}

// defaultAffinity gives affinity to clients a time, and none nothing.
func defaultAffinity(spec *corev1.ServiceSpec) {
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
}

// Consequences of the type of a service.

func isHeadless(s *corev1.Service) bool {
	return len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func isBalanced(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeLoadBalancer }

// isExternal reports whether a service is reached from outside.
func isExternal(s *corev1.Service) bool {
	return isBalanced(s) || s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// needsHealthPort reports whether a load balancer has to find out on which nodes
// the service runs.
func needsHealthPort(s *corev1.Service) bool {
	return isBalanced(s) && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func needsAddress(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }

func needsNodePorts(s *corev1.Service) bool {
	return isBalanced(s) || s.Spec.Type == corev1.ServiceTypeNodePort
}

// serviceRules are the rules of Services that depend on the release.
type serviceRules struct {
	now       bool // those after 1.32
	closest   bool // traffic may prefer the same zone and node
	addresses rules.Addresses
}

// statusWarnings returns warnings about the addresses of a load balancer.
func (r serviceRules) statusWarnings(s, _ *corev1.Service) []string {
	if !r.now {
		return nil
	}
	var out []string
	for i, in := range s.Status.LoadBalancer.Ingress {
		out = append(out, rules.IPWarnings(in.IP, statusPath.Child("loadBalancer", "ingress").Index(i))...)
	}
	return out
}

func (r serviceRules) warnings(s, _ *corev1.Service) []string {
	ofAddress, ofRange := addressWarnings, rangeWarnings
	if r.now {
		ofAddress, ofRange = rules.IPWarnings, rules.CIDRWarnings
	}
	var warnings []string
	warn := func(when bool, text string) {
		if when {
			warnings = append(warnings, text)
		}
	}
	_, hints := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	warn(hints, fmt.Sprintf("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	for i, ip := range s.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			warnings = append(warnings, ofAddress(ip, specPath.Child("clusterIPs").Index(i))...)
		}
	}
	headless := s.Spec.Type == corev1.ServiceTypeClusterIP && s.Spec.ClusterIP == corev1.ClusterIPNone
	warn(r.now && headless && s.Spec.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services")
	warn(r.now && headless && len(s.Spec.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services")
	warn(r.now && headless && s.Spec.SessionAffinity != corev1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services")
	for i, ip := range s.Spec.ExternalIPs {
		warnings = append(warnings, ofAddress(ip, specPath.Child("externalIPs").Index(i))...)
	}
	external := s.Spec.Type == corev1.ServiceTypeExternalName
	warn(r.now && len(s.Spec.ExternalIPs) > 0 && !headless && !external, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	if s.Spec.LoadBalancerIP != "" {
		warnings = append(warnings, ofAddress(s.Spec.LoadBalancerIP, specPath.Child("loadBalancerIP"))...)
	}
	for i, cidr := range s.Spec.LoadBalancerSourceRanges {
		warnings = append(warnings, ofRange(cidr, specPath.Child("loadBalancerSourceRanges").Index(i))...)
	}
	warn(external && len(s.Spec.ExternalIPs) > 0, fmt.Sprintf("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName))
	warn(!external && s.Spec.ExternalName != "", fmt.Sprintf("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName))
	if d := s.Spec.TrafficDistribution; d != nil {
		warn(r.now && *d == corev1.ServiceTrafficDistributionPreferClose, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q", *d, corev1.ServiceTrafficDistributionPreferSameZone))
	}
	return warnings
}
