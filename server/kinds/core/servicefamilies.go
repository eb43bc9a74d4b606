package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	addressesPath = specPath.Child("clusterIPs")
	familiesPath  = specPath.Child("ipFamilies")
	policyPath    = specPath.Child("ipFamilyPolicy")
)

// familyOf returns the family of a valid address.
func familyOf(ip string) corev1.IPFamily {
	if netutils.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// validateAddresses checks addresses and their families, as far as they are known.
func validateAddresses(s *corev1.Service, a rules.Addresses) field.ErrorList {
	spec := &s.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	var errs field.ErrorList
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(addressesPath, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		errs = append(errs, field.Required(addressesPath, ""))
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(addressesPath, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	seen := rules.Seen[corev1.IPFamily]{}
	for i, f := range rules.Until(&errs, spec.IPFamilies) {
		errs = append(errs, rules.OneOf(f, familiesPath.Index(i), corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		errs = rules.DuplicateIf(errs, seen.Again(f), familiesPath.Index(i), f)
	}
	if spec.IPFamilyPolicy != nil {
		errs = append(errs, rules.OneOf(*spec.IPFamilyPolicy, policyPath,
			corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)...)
	}
	malformed := validateAddressList(spec.ClusterIPs, a)
	errs = append(errs, malformed...)
	errs = rules.InvalidIf(errs, len(spec.ClusterIPs) > 2, addressesPath, spec.ClusterIPs, "may only hold up to 2 values")
	if len(malformed) > 0 {
		return errs // further errors would only confuse
	}
	return append(errs, validateAddressFamilies(s)...)
}

func validateAddressList(ips []string, a rules.Addresses) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range rules.Until(&errs, ips) {
		if i == 0 && ip == corev1.ClusterIPNone {
			errs = rules.InvalidIf(errs, len(ips) > 1, addressesPath, ips, "'None' must be the first and only value")
			continue
		}
		errs = append(errs, a.IP(ip, addressesPath.Index(i))...)
	}
	return errs
}

func validateAddressFamilies(s *corev1.Service) field.ErrorList {
	ips, families := s.Spec.ClusterIPs, s.Spec.IPFamilies
	var errs field.ErrorList
	if len(ips) > 1 {
		dual, err := netutils.IsDualStackIPStrings(ips)
		if err != nil {
			errs = append(errs, field.InternalError(addressesPath, fmt.Errorf("failed to check for dual stack with error:%v", err)))
		}
		errs = rules.InvalidIf(errs, !dual, addressesPath, ips, "may specify no more than one IP for each IP family")
	}
	if isHeadless(s) {
		return errs
	}
	for i := range min(len(ips), len(families)) {
		known := families[i] == corev1.IPv4Protocol || families[i] == corev1.IPv6Protocol
		if known && familyOf(ips[i]) != families[i] {
			errs = append(errs, field.Invalid(addressesPath.Index(i), ips[i], fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%v]`", families[i], i)))
		}
	}
	return errs
}

func (r serviceRules) validateUpdate(s, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	if needsAddress(s) && needsAddress(old) {
		errs = append(errs, validateAddressChange(s, old)...)
		errs = append(errs, validateFamilyChange(s, old)...)
	}
	errs = rules.InvalidIf(errs, isBalanced(s) && isBalanced(old) && !ptr.Equal(s.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass), specPath.Child("loadBalancerClass"), s.Spec.LoadBalancerClass, onceSet)
	errs = append(errs, validateBalancerClass(s)...)
	errs = rules.ForbiddenIf(errs, needsHealthPort(s) && needsHealthPort(old) && s.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort, specPath.Child("healthCheckNodePort"), "field is immutable")
	return append(errs, r.validate(s, old)...)
}

const onceSet = "may not change once set"

// validateAddressChange checks that the first address stays; a second one may come
// and go with the policy.
func validateAddressChange(s, old *corev1.Service) field.ErrorList {
	if isHeadless(s) && isHeadless(old) {
		return nil
	}
	ips, had := s.Spec.ClusterIPs, old.Spec.ClusterIPs
	var errs field.ErrorList
	if len(ips) == len(had) {
		for i := range had {
			errs = rules.InvalidIf(errs, ips[i] != had[i], addressesPath.Index(i), ips, onceSet)
		}
		return errs
	}
	errs = rules.InvalidIf(errs, len(ips) == 0, addressesPath.Index(0), ips, "primary clusterIP can not be unset")
	errs = rules.InvalidIf(errs, len(ips) > 0 && len(had) > 0 && ips[0] != had[0], addressesPath.Index(0), ips, onceSet)
	return rules.InvalidIf(errs, len(ips) < len(had) && len(ips) == 1 && valueOr(s.Spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack, policyPath, s.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary clusterIP")
}

func validateFamilyChange(s, old *corev1.Service) field.ErrorList {
	if isHeadless(s) || isHeadless(old) {
		return nil
	}
	families, had := s.Spec.IPFamilies, old.Spec.IPFamilies
	first := familiesPath.Index(0)
	var errs field.ErrorList
	if len(families) == len(had) {
		for i := range had {
			if families[i] != had[i] {
				errs = append(errs, field.Invalid(first, rules.Shown(families), onceSet))
			}
		}
		return errs
	}
	if len(families) < len(had) && len(s.Spec.ClusterIPs) == 0 {
		errs = append(errs, field.Invalid(first, rules.Shown(families), "primary ipFamily can not be unset"))
	}
	errs = rules.InvalidIf(errs, len(families) > 0 && len(had) > 0 && families[0] != had[0], first, s.Spec.ClusterIPs, onceSet)
	return rules.InvalidIf(errs, len(families) < len(had) && len(families) == 1 && valueOr(s.Spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack, policyPath, s.Spec.IPFamilyPolicy, "must be set to 'SingleStack' when releasing the secondary ipFamily")
}
