package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// roundUp brings amounts to the precision that is kept: thousandths.
func roundUp(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, amount := range list {
			amount.RoundUp(resource.Milli)
			list[name] = amount
		}
	}
}

// Resources by what they can be used for. Names without a domain must be known.
var (
	containerResources = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	}
	countedResources = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
	quotaResources = slices.Concat(containerResources, countedResources, []corev1.ResourceName{
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceRequestsStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	})
	podComputeResources = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
)

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func isQuotaResource(name corev1.ResourceName) bool {
	return slices.Contains(quotaResources, name) || isHugePages(name) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// isNative reports whether the project itself defines a resource.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isExtended reports whether a resource is one that nodes advertise on their own.
func isExtended(name corev1.ResourceName) bool {
	if isNative(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// canOvercommit reports whether requests may be below limits.
func canOvercommit(name corev1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

func validateResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	if messages := validation.IsQualifiedName(string(name)); len(messages) > 0 {
		return rules.Messages(path, name, messages)
	}
	if strings.Contains(string(name), "/") || name == corev1.ResourceStorage || isQuotaResource(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must be a standard resource type or fully qualified")}
}

func validateContainerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := validateResourceName(name, path)
	switch {
	case !strings.Contains(string(name), "/"):
		if !slices.Contains(containerResources, name) && !isHugePages(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !isNative(name) && !isExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

func validateQuotaResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := validateResourceName(name, path)
	if !strings.Contains(string(name), "/") && !isQuotaResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

// validateAmount checks an amount: not negative, and whole where things are counted.
func validateAmount(name corev1.ResourceName, amount resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if amount.Cmp(resource.Quantity{}) < 0 {
		errs = append(errs, field.Invalid(path, amount.String(), apivalidation.IsNegativeErrorMsg))
	}
	if (slices.Contains(countedResources, name) || isExtended(name)) && amount.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, amount, "must be an integer"))
	}
	return errs
}

func validatePositive(amount resource.Quantity, path *field.Path) field.ErrorList {
	if amount.Cmp(resource.Quantity{}) <= 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than zero")}
	}
	return nil
}
