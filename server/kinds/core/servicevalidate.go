package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// kubeletPort is the port of the kubelet on each node.
const kubeletPort = 10250

const onlyBalanced = "may only be used when `type` is 'LoadBalancer'"

// validate checks a service that replaces old, which is nil on create.
func (r serviceRules) validate(s, old *corev1.Service) field.ErrorList {
	spec := &s.Spec
	errs := validateTopologyMode(s)
	errs = append(errs, r.validateType(s)...)
	errs = append(errs, validateServicePorts(s)...)
	if spec.Selector != nil {
		errs = append(errs, rules.Labels(spec.Selector, specPath.Child("selector"))...)
	}
	errs = append(errs, validateAffinity(spec)...)
	errs = append(errs, validateAddresses(s, r.keeping(clusterIPs(old)))...)
	external := r.keeping(externalIPs(old))
	for i, ip := range rules.Until(&errs, spec.ExternalIPs) {
		path := specPath.Child("externalIPs").Index(i)
		if invalid := external.IP(ip, path); len(invalid) > 0 {
			errs = append(errs, invalid...)
		} else {
			errs = append(errs, rules.RoutableIP(ip, path)...)
		}
	}
	if spec.Type == "" {
		errs = append(errs, field.Required(specPath.Child("type"), ""))
	} else {
		errs = append(errs, rules.OneOf(spec.Type, specPath.Child("type"),
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	}
	errs = append(errs, validatePortUse(s)...)
	errs = append(errs, r.validateSourceRanges(s, old)...)
	errs = rules.ForbiddenIf(errs, spec.AllocateLoadBalancerNodePorts != nil && !isBalanced(s), specPath.Child("allocateLoadBalancerNodePorts"), onlyBalanced)
	errs = rules.RequiredIf(errs, spec.AllocateLoadBalancerNodePorts == nil && isBalanced(s), field.NewPath("allocateLoadBalancerNodePorts"), "")
	errs = append(errs, validateBalancerClass(s)...)
	return append(errs, r.validateTraffic(s)...)
}

// keeping lets texts of the old object stay as they are.
func (r serviceRules) keeping(had []string) rules.Addresses {
	a := r.addresses
	if a.Strict && len(had) > 0 {
		a.Kept = rules.In(had)
	}
	return a
}

func clusterIPs(s *corev1.Service) []string {
	if s == nil {
		return nil
	}
	return s.Spec.ClusterIPs
}

func externalIPs(s *corev1.Service) []string {
	if s == nil {
		return nil
	}
	return s.Spec.ExternalIPs
}

func validateTopologyMode(s *corev1.Service) field.ErrorList {
	hints, hinted := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	mode, set := s.Annotations[corev1.AnnotationTopologyMode]
	if !hinted || !set || mode == hints {
		return nil
	}
	message := fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints)
	return field.ErrorList{field.Invalid(metaPath.Child("annotations").Key(corev1.AnnotationTopologyMode), mode, message)}
}

// validateServiceType checks the requirements of a type.
func (r serviceRules) validateType(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	errs := rules.RequiredIf(nil, len(spec.Ports) == 0 && !isHeadless(s) && spec.Type != corev1.ServiceTypeExternalName, specPath.Child("ports"), "")
	if isBalanced(s) && !r.now {
		for i, p := range rules.Until(&errs, spec.Ports) {
			errs = rules.InvalidIf(errs, p.Port == kubeletPort, specPath.Child("ports").Index(i), p.Port,
				fmt.Sprintf("may not expose port %d externally since it is used by kubelet", kubeletPort))
		}
	}
	if needsNodePorts(s) && isHeadless(s) {
		errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(0), spec.ClusterIPs[0],
			fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)))
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		return errs
	}
	forbid := func(set bool, name string) {
		errs = rules.ForbiddenIf(errs, set, specPath.Child(name), "may not be set for ExternalName services")
	}
	forbid(len(spec.ClusterIPs) > 0, "clusterIPs")
	forbid(len(spec.IPFamilies) > 0, "ipFamilies")
	forbid(spec.IPFamilyPolicy != nil, "ipFamilyPolicy")
	name := strings.TrimSuffix(spec.ExternalName, ".") // fully qualified names may end with a dot
	if name == "" {
		return append(errs, field.Required(specPath.Child("externalName"), ""))
	}
	return append(errs, rules.Subdomain(name, specPath.Child("externalName"))...)
}

func validateServicePorts(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	names := make(map[string]bool)
	for i := range rules.Until(&errs, s.Spec.Ports) {
		p, path := &s.Spec.Ports[i], specPath.Child("ports").Index(i)
		if p.Name == "" {
			errs = rules.RequiredIf(errs, len(s.Spec.Ports) > 1, path.Child("name"), "")
		} else {
			errs = append(errs, rules.Label(p.Name, path.Child("name"))...)
			errs = rules.DuplicateIf(errs, names[p.Name], path.Child("name"), p.Name)
			names[p.Name] = true
		}
		errs = append(errs, rules.Messages(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
		errs = append(errs, validateProtocol(p.Protocol, path.Child("protocol"))...)
		if p.TargetPort.Type == intstr.Int {
			errs = append(errs, rules.Messages(path.Child("targetPort"), p.TargetPort.IntVal, validation.IsValidPortNum(p.TargetPort.IntValue()))...)
		} else {
			errs = append(errs, rules.Messages(path.Child("targetPort"), p.TargetPort.StrVal, validation.IsValidPortName(p.TargetPort.StrVal))...)
		}
		errs = append(errs, rules.Optional(p.AppProtocol, path.Child("appProtocol"), rules.QualifiedName)...)
	}
	return errs
}

// validatePortUse checks that no port is claimed twice, by protocol.
func validatePortUse(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	ports := s.Spec.Ports
	at := specPath.Child("ports")
	if s.Spec.Type == corev1.ServiceTypeClusterIP {
		for i := range rules.Until(&errs, ports) {
			errs = rules.ForbiddenIf(errs, ports[i].NodePort != 0, at.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
		}
	}
	type use struct {
		protocol corev1.Protocol
		port     int32
	}
	onNodes, onService := make(map[use]bool), make(map[use]bool)
	for i := range rules.Until(&errs, ports) {
		if ports[i].NodePort == 0 {
			continue
		}
		u := use{ports[i].Protocol, ports[i].NodePort}
		if onNodes[u] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("nodePort"), ports[i].NodePort))
		}
		onNodes[u] = true
	}
	for i := range rules.Until(&errs, ports) {
		u := use{ports[i].Protocol, ports[i].Port}
		if onService[u] {
			errs = append(errs, field.Duplicate(at.Index(i), rules.Shown(corev1.ServicePort{Protocol: u.protocol, Port: u.port})))
		}
		onService[u] = true
	}
	return errs
}

func validateAffinity(spec *corev1.ServiceSpec) field.ErrorList {
	path := specPath.Child("sessionAffinityConfig")
	errs := rules.RequiredOneOf(spec.SessionAffinity, specPath.Child("sessionAffinity"), corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	config := spec.SessionAffinityConfig
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		if config != nil {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("must not be set when session affinity is %s", corev1.ServiceAffinityNone)))
		}
	case corev1.ServiceAffinityClientIP:
		switch {
		case config == nil:
			errs = append(errs, field.Required(path, fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		case config.ClientIP == nil:
			errs = append(errs, field.Required(path.Child("clientIP"), fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		case config.ClientIP.TimeoutSeconds == nil:
			errs = append(errs, field.Required(path.Child("clientIP", "timeoutSeconds"), fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)))
		default:
			errs = append(errs, affinityTime(*config.ClientIP.TimeoutSeconds, path.Child("clientIP", "timeoutSeconds"))...)
		}
	}
	return errs
}

func affinityTime(seconds int32, path *field.Path) field.ErrorList {
	const most = 86400
	if seconds <= 0 || seconds > most {
		return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must be greater than 0 and less than %d", most))}
	}
	return nil
}

// validateSourceRanges checks the clients of a load balancer: the field, or without it the former annotation.
func (r serviceRules) validateSourceRanges(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	if ranges := s.Spec.LoadBalancerSourceRanges; len(ranges) > 0 {
		path := specPath.Child("LoadBalancerSourceRanges")
		errs = rules.ForbiddenIf(errs, !isBalanced(s), path, onlyBalanced)
		var had []string
		if old != nil && r.addresses.Strict {
			for _, cidr := range old.Spec.LoadBalancerSourceRanges {
				had = append(had, strings.TrimSpace(cidr))
			}
		}
		kept := r.keeping(had)
		for i, cidr := range rules.Until(&errs, ranges) {
			errs = append(errs, kept.CIDR(strings.TrimSpace(cidr), path.Index(i))...)
		}
		return errs
	}
	text, ok := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	if !ok {
		return nil
	}
	path := metaPath.Child("annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
	errs = rules.ForbiddenIf(errs, !isBalanced(s), path, onlyBalanced)
	if r.now && old != nil {
		if had, ok := old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; ok && had == text {
			return errs
		}
	}
	if text = strings.TrimSpace(text); text == "" || len(text) > apivalidation.TotalAnnotationSizeLimitB { // a longer one is refused anyway
		return errs
	}
	for cidr := range strings.SplitSeq(text, ",") {
		if errs = append(errs, r.addresses.CIDR(strings.TrimSpace(cidr), path)...); len(errs) > rules.MaxErrors {
			break
		}
	}
	return errs
}

func validateBalancerClass(s *corev1.Service) field.ErrorList {
	path := specPath.Child("loadBalancerClass")
	switch class := s.Spec.LoadBalancerClass; {
	case class == nil:
		return nil
	case !isBalanced(s):
		return field.ErrorList{field.Forbidden(path, onlyBalanced)}
	default:
		return rules.QualifiedName(*class, path)
	}
}

// validateTraffic checks the policies about where traffic goes.
func (r serviceRules) validateTraffic(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	external, health := specPath.Child("externalTrafficPolicy"), specPath.Child("healthCheckNodePort")
	switch {
	case !isExternal(s):
		errs = rules.InvalidIf(errs, spec.ExternalTrafficPolicy != "", external, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services")
	case spec.ExternalTrafficPolicy == "":
		errs = append(errs, field.Required(external, ""))
	default:
		errs = append(errs, rules.OneOf(spec.ExternalTrafficPolicy, external, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	}
	switch port := spec.HealthCheckNodePort; {
	case !needsHealthPort(s):
		errs = rules.InvalidIf(errs, port != 0, health, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	case port == 0:
		errs = append(errs, field.Required(health, ""))
	default:
		errs = append(errs, rules.Messages(health, port, validation.IsValidPortNum(int(port)))...)
	}
	if spec.InternalTrafficPolicy != nil {
		errs = append(errs, rules.OneOf(*spec.InternalTrafficPolicy, specPath.Child("internalTrafficPolicy"),
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	} else if needsNodePorts(s) || spec.Type == corev1.ServiceTypeClusterIP {
		errs = append(errs, field.Required(specPath.Child("internalTrafficPolicy"), ""))
	}
	if spec.TrafficDistribution != nil {
		supported := []string{corev1.ServiceTrafficDistributionPreferClose}
		if r.closest {
			supported = append(supported, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
		}
		errs = append(errs, rules.OneOf(*spec.TrafficDistribution, specPath.Child("trafficDistribution"), supported...)...)
	}
	return errs
}

func (r serviceRules) validateStatus(s, old *corev1.Service) field.ErrorList {
	var had []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		had = append(had, in.IP)
	}
	kept := r.keeping(had)
	path := statusPath.Child("loadBalancer", "ingress")
	ingress := s.Status.LoadBalancer.Ingress
	if !isBalanced(s) && len(ingress) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var errs field.ErrorList
	for i, in := range rules.Until(&errs, ingress) {
		p := path.Index(i)
		if in.IP != "" {
			errs = append(errs, kept.IP(in.IP, p.Child("ip"))...)
		}
		switch {
		case in.IPMode == nil:
			errs = rules.RequiredIf(errs, in.IP != "", p.Child("ipMode"), "must be specified when `ip` is set")
		case in.IP == "":
			errs = append(errs, field.Forbidden(p.Child("ipMode"), "may not be specified when `ip` is not set"))
		default:
			errs = append(errs, rules.OneOf(*in.IPMode, p.Child("ipMode"), corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP)...)
		}
		if in.Hostname != "" {
			errs = append(errs, rules.Subdomain(in.Hostname, p.Child("hostname"))...)
			errs = rules.InvalidIf(errs, netutils.ParseIPSloppy(in.Hostname) != nil, p.Child("hostname"), in.Hostname, "must be a DNS name, not an IP address")
		}
	}
	return errs
}
