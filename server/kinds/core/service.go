package core

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Service is how Services are written whose addresses and ports a hands out.
func Service(a *ServiceAllocator) kinds.Strategy {
	claimsIn := ""
	if a != nil && a.ranges != nil {
		claimsIn = IPAddressStorage
	}
	return kinds.Typed[*corev1.Service]{
		Meta:                &kinds.WholeMeta,
		ValidateName:        apivalidation.NameIsDNS1035Label,
		Default:             defaultService,
		PrepareForUpdate:    prepareServiceUpdate,
		Validate:            validateService,
		ValidateUpdate:      validateServiceUpdate,
		Warnings:            serviceWarnings,
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		DeleteAlso:          "endpoints",
		Status:              &kinds.Status[*corev1.Service]{Validate: validateServiceStatus},
		Allocate:            a,
		ClaimsIn:            claimsIn,
	}.Strategy()
}

// ServiceFields are what Services are selected by.
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

// externalAddress is where a service is reached from outside.
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

// ingressAddresses lists what a load balancer listens on, sorted, each once.
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
			seconds := corev1.DefaultClientIPServiceAffinitySeconds
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
		}
	}
}

// What follows from the type of a service.

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

func serviceWarnings(s, _ *corev1.Service) []string {
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
			warnings = append(warnings, addressWarnings("spec.clusterIPs["+strconv.Itoa(i)+"]", ip)...)
		}
	}
	for i, ip := range s.Spec.ExternalIPs {
		warnings = append(warnings, addressWarnings("spec.externalIPs["+strconv.Itoa(i)+"]", ip)...)
	}
	if s.Spec.LoadBalancerIP != "" {
		warnings = append(warnings, addressWarnings("spec.loadBalancerIP", s.Spec.LoadBalancerIP)...)
	}
	for i, cidr := range s.Spec.LoadBalancerSourceRanges {
		warnings = append(warnings, rangeWarnings("spec.loadBalancerSourceRanges["+strconv.Itoa(i)+"]", cidr)...)
	}
	external := s.Spec.Type == corev1.ServiceTypeExternalName
	warn(external && len(s.Spec.ExternalIPs) > 0, fmt.Sprintf("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName))
	warn(!external && s.Spec.ExternalName != "", fmt.Sprintf("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName))
	return warnings
}
