package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// podComputeResources are the resources that only quotas of pods can count, in addition to pods.
var podComputeResources = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
}

func isQuotaResource(name corev1.ResourceName) bool {
	return podspec.IsStandardResource(name) && name != corev1.ResourceStorage
}

func validateQuotaResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := podspec.ValidateResourceName(name, path)
	return rules.InvalidIf(errs, !strings.Contains(string(name), "/") && !isQuotaResource(name), path, name, "must be a standard resource for quota")
}

func validatePositive(amount resource.Quantity, path *field.Path) field.ErrorList {
	if amount.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than zero")}
	}
	return nil
}
