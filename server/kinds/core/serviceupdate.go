package core

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// prepareServiceUpdate keeps the status, and drops fields that a service no longer needs because its type
// changed, if the client left them unchanged. Fields that the client changed stay, to be refused.
func prepareServiceUpdate(s, old *corev1.Service) {
	spec, was := &s.Spec, &old.Spec
	if needsAddress(old) && !needsAddress(s) {
		if sameAddresses(s, old) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(was.IPFamilies, spec.IPFamilies) {
			spec.IPFamilies = nil
		}
		if ptr.Equal(was.IPFamilyPolicy, spec.IPFamilyPolicy) {
			spec.IPFamilyPolicy = nil
		}
		if ptr.Equal(was.InternalTrafficPolicy, spec.InternalTrafficPolicy) {
			spec.InternalTrafficPolicy = nil
		}
	}
	if needsNodePorts(old) && !needsNodePorts(s) && noNewNodePorts(s, old) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if needsHealthPort(old) && !needsHealthPort(s) && was.HealthCheckNodePort == spec.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if isBalanced(old) && !isBalanced(s) {
		if spec.AllocateLoadBalancerNodePorts != nil && ptr.Equal(was.AllocateLoadBalancerNodePorts, spec.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(was.LoadBalancerClass, spec.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
	}
	if isExternal(old) && !isExternal(s) && was.ExternalTrafficPolicy == spec.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if !isBalanced(s) {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func sameAddresses(s, old *corev1.Service) bool {
	return s.Spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs)
}

// noNewNodePorts reports whether the client added no node port.
func noNewNodePorts(s, old *corev1.Service) bool {
	had := rules.In(nodePorts(old))
	return !slices.ContainsFunc(nodePorts(s), func(port int32) bool { return !had.Has(port) })
}

// nodePorts returns the ports of a service on nodes, as often as they are named.
func nodePorts(s *corev1.Service) []int32 {
	var ports []int32
	for i := range s.Spec.Ports {
		if p := s.Spec.Ports[i].NodePort; p != 0 {
			ports = append(ports, p)
		}
	}
	return ports
}

// keepAllocated keeps a service's allocations that the client does not set: sending a manifest again must not
// change them.
func keepAllocated(s, old *corev1.Service) {
	if needsAddress(old) && needsAddress(s) {
		s.Spec.ClusterIP = cmp.Or(s.Spec.ClusterIP, old.Spec.ClusterIP)
		if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP == old.Spec.ClusterIP {
			s.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
	}
	if needsNodePorts(old) && needsNodePorts(s) {
		keepNodePorts(s, old)
	}
	if needsHealthPort(old) && needsHealthPort(s) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// keepNodePorts finds ports again by their name, unless the client uses their node
// port for another one.
func keepNodePorts(s, old *corev1.Service) {
	had, named := rules.In(nodePorts(old)), make(map[string]int32)
	for i := range old.Spec.Ports {
		named[old.Spec.Ports[i].Name] = old.Spec.Ports[i].NodePort
	}
	used := make(map[int32]bool)
	for _, port := range nodePorts(s) {
		used[port] = had.Has(port)
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if port := named[p.Name]; p.NodePort == 0 && !used[port] {
			p.NodePort = port
		}
	}
}

// syncAddresses keeps the older field of one address and the newer one of several
// in step, for clients that know one of them.
func syncAddresses(s, old *corev1.Service) {
	spec := &s.Spec
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	if len(old.Spec.ClusterIPs) > 0 && len(spec.ClusterIPs) == 0 && old.Spec.ClusterIP == spec.ClusterIP {
		spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
	untouched := len(spec.ClusterIPs) == 0 || slices.Equal(old.Spec.ClusterIPs, spec.ClusterIPs)
	if old.Spec.ClusterIP == spec.ClusterIP || !untouched {
		return
	}
	spec.ClusterIPs = nil
	if spec.ClusterIP != "" {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}
