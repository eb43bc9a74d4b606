package core

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// settleFamilies sets families and policy from the client's request and the cluster's families, or refuses
// families that the cluster lacks. old is nil on create.
func (a *ServiceAllocator) settleFamilies(s, old *corev1.Service) error {
	if !needsAddress(s) || keepsPreference(s, old) {
		return nil
	}
	spec := &s.Spec
	selectorless := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		switch {
		case old != nil && old.Spec.IPFamilyPolicy != nil:
			policy = *old.Spec.IPFamilyPolicy
		case selectorless:
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if errs := validateAddresses(s, serviceRules{addresses: rules.Addresses{Strict: a.strict}}.keeping(clusterIPs(old))); len(errs) > 0 {
		return a.invalid(s, errs...)
	}
	errs := shrink(s, old)
	errs = append(errs, singleStack(spec)...)
	errs = append(errs, a.inferFamilies(spec)...)
	if len(errs) > 0 {
		return a.invalid(s, errs...)
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if selectorless {
		// The author of the endpoints decides; the cluster need not have both families.
		a.fillFamilies(spec, !single)
		return nil
	}
	if errs := a.checkFamilies(spec); len(errs) > 0 {
		return a.invalid(s, errs...)
	}
	a.fillFamilies(spec, !single && len(a.families) == 2)
	return nil
}

// keepsPreference reports whether an update leaves a service that prefers dual stack as it is: it does not
// follow a cluster that gains or loses a family.
func keepsPreference(s, old *corev1.Service) bool {
	prefers := func(s *corev1.Service) bool {
		return valueOr(s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicyPreferDualStack) == corev1.IPFamilyPolicyPreferDualStack
	}
	return old != nil && s.Spec.IPFamilyPolicy != nil && s.Spec.Type == old.Spec.Type && prefers(s) && prefers(old) &&
		sameAddresses(s, old) && slices.Equal(s.Spec.IPFamilies, old.Spec.IPFamilies)
}

// shrink drops the second address and family of a service that an update makes
// single-stack; other policies keep them.
func shrink(s, old *corev1.Service) field.ErrorList {
	if old == nil {
		return nil
	}
	spec := &s.Spec
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		if len(spec.ClusterIPs) > 1 && sameAddresses(s, old) {
			spec.ClusterIPs = spec.ClusterIPs[:1]
		}
		if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, old.Spec.IPFamilies) {
			spec.IPFamilies = spec.IPFamilies[:1]
		}
		return nil
	}
	var errs field.ErrorList
	if n := len(spec.ClusterIPs); n > 0 && n < len(old.Spec.ClusterIPs) {
		errs = append(errs, field.Invalid(policyPath, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if n := len(spec.IPFamilies); n > 0 && n < len(old.Spec.IPFamilies) {
		errs = append(errs, field.Invalid(policyPath, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

// singleStack checks that a single-stack service does not ask for two of something.
func singleStack(spec *corev1.ServiceSpec) field.ErrorList {
	if *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		return nil
	}
	var errs field.ErrorList
	refuse := func(two bool, of string) {
		if two {
			errs = append(errs, field.Invalid(policyPath, spec.IPFamilyPolicy,
				"must be 'RequireDualStack' or 'PreferDualStack' when multiple "+of+" are specified"))
		}
	}
	refuse(len(spec.ClusterIPs) == 2, "cluster IPs")
	refuse(len(spec.IPFamilies) == 2, "IP families")
	return errs
}

// inferFamilies adds the families of addresses that the client requested.
func (a *ServiceAllocator) inferFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			break
		}
		if i < len(spec.IPFamilies) {
			continue
		}
		if f := familyOf(ip); slices.Contains(a.families, f) {
			spec.IPFamilies = append(spec.IPFamilies, f)
		} else {
			errs = append(errs, field.Invalid(addressesPath.Index(i), spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", f)))
		}
	}
	return errs
}

// checkFamilies checks that the cluster has the families that a service requests.
func (a *ServiceAllocator) checkFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	errs := rules.InvalidIf(nil, *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(a.families) < 2, policyPath, spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services")
	for i, f := range spec.IPFamilies {
		errs = rules.InvalidIf(errs, !slices.Contains(a.families, f), familiesPath.Index(i), f, "not configured on this cluster")
	}
	return errs
}

// fillFamilies completes the list: the default family, and the other one if both.
func (a *ServiceAllocator) fillFamilies(spec *corev1.ServiceSpec, both bool) {
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{a.families[0]}
	}
	if both && len(spec.IPFamilies) == 1 {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
}

// addresses takes an address of each family of a service that has none yet.
func (p *allocation) addresses(s *corev1.Service) error {
	if !needsAddress(s) || len(s.Spec.ClusterIPs) > 0 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone {
		return nil
	}
	return p.addressesFrom(s, 0)
}

// addressesFrom takes the addresses of a service from the first one on.
func (p *allocation) addressesFrom(s *corev1.Service, first int) error {
	spec := &s.Spec
	asked := slices.Clone(spec.ClusterIPs)
	for i := first; i < len(spec.IPFamilies); i++ {
		if i >= len(spec.ClusterIPs) {
			spec.ClusterIPs = append(spec.ClusterIPs, "")
		}
		wanted := spec.ClusterIPs[i]
		ip, err := p.address(spec.IPFamilies[i], wanted)
		switch {
		case err != nil && wanted == "" && !p.a.release.Has(release.KindRules133):
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", err))
		case errors.Is(err, errExhausted) && wanted == "":
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", s.Name, err))
		case err != nil && wanted == "":
			return p.a.invalid(s, field.Invalid(addressesPath, asked, fmt.Sprintf("failed to allocate IP: %v", err)))
		case err != nil:
			return p.a.invalid(s, field.Invalid(addressesPath, asked, fmt.Sprintf("failed to allocate IP %v: %v", wanted, err)))
		}
		spec.ClusterIPs[i] = ip
	}
	if len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	return nil
}

// changeAddresses takes and releases addresses and ports for an update of a service.
func (p *allocation) changeAddresses(s, old *corev1.Service) error {
	if keepsPreference(s, old) {
		return nil
	}
	switch {
	case !needsAddress(old) && needsAddress(s):
		return p.addresses(s)
	case len(old.Spec.ClusterIPs) > 0 && old.Spec.ClusterIPs[0] == corev1.ClusterIPNone:
	case needsAddress(old) && !needsAddress(s):
		p.releaseAddresses(old.Spec.ClusterIPs...)
	case len(old.Spec.IPFamilies) == 1 && len(s.Spec.IPFamilies) == 2:
		return p.addressesFrom(s, 1)
	case len(old.Spec.IPFamilies) == 2 && len(s.Spec.IPFamilies) == 1 && len(old.Spec.ClusterIPs) == 2:
		p.releaseAddresses(old.Spec.ClusterIPs[1])
	}
	return nil
}

// wantsPorts reports whether ports are taken for a service unasked.
func wantsPorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		isBalanced(s) && valueOr(s.Spec.AllocateLoadBalancerNodePorts, true)
}

// firstPorts takes the node ports of a new service. Ports of the same number share
// one, over several protocols.
func (p *allocation) firstPorts(s *corev1.Service) error {
	ports := s.Spec.Ports
	shared := make(map[int32]int32)
	asked := requestedPorts(ports)
	for i := range ports {
		port := &ports[i]
		if port.NodePort == 0 && !wantsPorts(s) {
			continue
		}
		have := shared[port.Port]
		switch {
		case have == 0:
			wanted := asked[port.Port]
			if err := p.takePort(s, i, wanted); err != nil {
				return err
			}
			shared[port.Port] = port.NodePort
		case port.NodePort == 0:
			port.NodePort = have
		case port.NodePort != have:
			if err := p.takePort(s, i, port.NodePort); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestedPorts returns the node ports that a client named, the first for each port of a service.
func requestedPorts(ports []corev1.ServicePort) map[int32]int32 {
	asked := make(map[int32]int32, len(ports))
	for i := range ports {
		if p := &ports[i]; p.NodePort != 0 && asked[p.Port] == 0 {
			asked[p.Port] = p.NodePort
		}
	}
	return asked
}

// takePort takes a node port for the i-th port: the wanted one, or any for zero.
func (p *allocation) takePort(s *corev1.Service, i int, wanted int32) error {
	if wanted != 0 {
		if err := p.port(wanted); err != nil {
			return p.a.invalid(s, field.Invalid(specPath.Child("ports").Index(i).Child("nodePort"), wanted, err.Error()))
		}
		s.Spec.Ports[i].NodePort = wanted
		return nil
	}
	port, err := p.anyPort()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
	}
	s.Spec.Ports[i].NodePort = port
	return nil
}

// changePorts takes the ports that an update adds and gives back those it drops.
func (p *allocation) changePorts(s, old *corev1.Service) error {
	list := nodePorts(old)
	had := rules.In(list)
	seen := make(map[int32]bool)
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		switch {
		case port.NodePort == 0 && !wantsPorts(s):
			continue
		case port.NodePort == 0, !had.Has(port.NodePort) && !seen[port.NodePort]:
			if err := p.takePort(s, i, port.NodePort); err != nil {
				return err
			}
		}
		seen[port.NodePort] = true
	}
	for _, port := range unique(list) {
		if !seen[port] {
			p.giveBack(portPool, portName(port))
		}
	}
	return nil
}

// healthPort takes the port on which nodes answer a load balancer.
func (p *allocation) healthPort(s *corev1.Service) error {
	port := s.Spec.HealthCheckNodePort
	if port != 0 {
		if err := p.port(port); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", port, err))
		}
		return nil
	}
	port, err := p.anyPort()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", port, err))
	}
	s.Spec.HealthCheckNodePort = port
	return nil
}
