package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// standardResources are the unprefixed names that the platform knows.
var standardResources = map[corev1.ResourceName]bool{
	"cpu": true, "memory": true, "ephemeral-storage": true,
	"requests.cpu": true, "requests.memory": true, "requests.ephemeral-storage": true,
	"limits.cpu": true, "limits.memory": true, "limits.ephemeral-storage": true,
	"pods": true, "resourcequotas": true, "services": true, "replicationcontrollers": true, "secrets": true,
	"configmaps": true, "persistentvolumeclaims": true, "storage": true, "requests.storage": true,
	"services.nodeports": true, "services.loadbalancers": true,
}

// countedResources come in whole numbers.
var countedResources = map[corev1.ResourceName]bool{
	"pods": true, "resourcequotas": true, "services": true, "replicationcontrollers": true, "secrets": true,
	"configmaps": true, "persistentvolumeclaims": true, "services.nodeports": true, "services.loadbalancers": true,
}

func isHugePages(n corev1.ResourceName) bool {
	return strings.HasPrefix(string(n), corev1.ResourceHugePagesPrefix)
}

// IsStandardResource reports whether an unprefixed name is a standard resource, in a container or in a quota.
func IsStandardResource(n corev1.ResourceName) bool {
	return standardResources[n] || isHugePages(n) || strings.HasPrefix(string(n), corev1.ResourceRequestsHugePagesPrefix)
}

// IsContainerResource reports whether containers may request an unprefixed name.
func IsContainerResource(n corev1.ResourceName) bool {
	return n == corev1.ResourceCPU || n == corev1.ResourceMemory || n == corev1.ResourceEphemeralStorage || isHugePages(n)
}

// IsNativeResource reports whether a name belongs to the platform: it has no prefix,
// or one below kubernetes.io.
func IsNativeResource(n corev1.ResourceName) bool {
	return !strings.Contains(string(n), "/") || strings.Contains(string(n), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtendedResource reports whether a name is an extended resource that also works in
// a quota.
func IsExtendedResource(n corev1.ResourceName) bool {
	if IsNativeResource(n) || strings.HasPrefix(string(n), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	quota := corev1.DefaultResourceRequestsPrefix + string(n)
	return okQualifiedName(quota) || len(utilvalidation.IsQualifiedName(quota)) == 0
}

// IsOvercommitAllowed reports whether requests may be lower than limits.
func IsOvercommitAllowed(n corev1.ResourceName) bool { return IsNativeResource(n) && !isHugePages(n) }

// IsIntegerResource reports whether a resource comes in whole numbers.
func IsIntegerResource(n corev1.ResourceName) bool {
	return countedResources[n] || IsExtendedResource(n)
}

// divisibleByPage reports whether q is a whole number of pages of the size in n. A
// name without a size divides nothing.
func divisibleByPage(n corev1.ResourceName, q resource.Quantity) bool {
	text := strings.TrimPrefix(string(n), corev1.ResourceHugePagesPrefix)
	if !quantities.Fits(text) {
		return false // parsing it could take hours
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || size.Value() == 0 {
		return false
	}
	return q.Value()%size.Value() == 0
}

// ValidateResourceName checks the name of a resource, wherever one is named.
func ValidateResourceName(n corev1.ResourceName, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !okQualifiedName(string(n)) {
		for _, m := range utilvalidation.IsQualifiedName(string(n)) {
			errs = append(errs, field.Invalid(p, n, m))
		}
	}
	return rules.InvalidIf(errs, len(errs) == 0 && !strings.Contains(string(n), "/") && !IsStandardResource(n), p, n, "must be a standard resource type or fully qualified")
}

// ValidateContainerResourceName checks the name of a resource that containers have.
func ValidateContainerResourceName(n corev1.ResourceName, p *field.Path) field.ErrorList {
	errs := ValidateResourceName(n, p)
	if !strings.Contains(string(n), "/") {
		errs = rules.InvalidIf(errs, !IsContainerResource(n), p, n, "must be a standard resource for containers")
	} else if !IsNativeResource(n) && !IsExtendedResource(n) {
		errs = append(errs, field.Invalid(p, n, "doesn't follow extended resource name standard"))
	}
	return errs
}

// ValidateResourceQuantity checks that an amount is not negative, and whole where
// it has to be.
func ValidateResourceQuantity(n corev1.ResourceName, q resource.Quantity, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(p, q.String(), validation.IsNegativeErrorMsg))
	}
	return rules.InvalidIf(errs, IsIntegerResource(n) && q.MilliValue()%1000 != 0, p, q, "must be an integer")
}

// okAmount passes the usual resources without building a path.
func okAmount(n corev1.ResourceName, q *resource.Quantity) bool {
	return (n == corev1.ResourceCPU || n == corev1.ResourceMemory || n == corev1.ResourceEphemeralStorage) && q.Sign() >= 0
}

// resources checks requests and limits of a container.
func (c *checker) resources(r *corev1.ResourceRequirements, claims *claimNames, p *field.Path, child string) {
	if len(r.Limits) == 0 && len(r.Requests) == 0 && len(r.Claims) == 0 {
		return
	}
	compute, huge := false, false
	note := func(n corev1.ResourceName) {
		compute = compute || n == corev1.ResourceCPU || n == corev1.ResourceMemory
		huge = huge || isHugePages(n)
	}
	for _, n := range sortedKeys(r.Limits) {
		c.amount(n, r.Limits[n], p, child, "limits")
		note(n)
	}
	for _, n := range sortedKeys(r.Requests) {
		q := r.Requests[n]
		c.amountButPages(n, q, p, child, "requests")
		c.requestWithinLimit(n, q, r.Limits, p, child)
		c.pages(n, q, p, child, "requests")
		note(n)
	}
	if huge && !compute {
		c.forbidden(at(p, child), "HugePages require cpu or memory")
	}
	if len(r.Claims) > 0 {
		c.claimRefs(r.Claims, claims, at(p, child).Child("claims"))
	}
}

func (c *checker) amount(n corev1.ResourceName, q resource.Quantity, p *field.Path, child, list string) {
	c.amountButPages(n, q, p, child, list)
	c.pages(n, q, p, child, list)
}

func (c *checker) amountButPages(n corev1.ResourceName, q resource.Quantity, p *field.Path, child, list string) {
	if okAmount(n, &q) && !(c.ofPod && n == corev1.ResourceEphemeralStorage) {
		return
	}
	key := at(p, child).Child(list).Key(string(n))
	if !c.ofPod {
		c.add(ValidateContainerResourceName(n, key)...)
	} else if errs := ValidateResourceName(n, key); len(errs) > 0 {
		c.add(errs...)
	} else if !ofWholePod(n, c.o.Since133) {
		c.add(field.NotSupported(key, n, c.wholePod()))
	}
	c.add(ValidateResourceQuantity(n, q, key)...)
}

// wholePod returns the resources of pods as a whole, in the order of messages.
func (c *checker) wholePod() []corev1.ResourceName {
	if c.o.Since133 {
		return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceHugePagesPrefix, corev1.ResourceMemory}
	}
	return podLevelResources
}

func (c *checker) pages(n corev1.ResourceName, q resource.Quantity, p *field.Path, child, list string) {
	if isHugePages(n) && !c.o.AllowIndivisibleHugePages && !divisibleByPage(n, q) {
		c.invalid(at(p, child).Child(list).Key(string(n)), q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), n))
	}
}

func (c *checker) requestWithinLimit(n corev1.ResourceName, q resource.Quantity, limits corev1.ResourceList, p *field.Path, child string) {
	limit, ok := limits[n]
	switch {
	case !ok:
		if !IsOvercommitAllowed(n) {
			c.required(at(p, child).Child("limits"), "Limit must be set for non overcommitable resources")
		}
	case q.Cmp(limit) != 0 && !IsOvercommitAllowed(n):
		c.invalid(at(p, child).Child("requests"), q.String(), fmt.Sprintf("must be equal to %s limit of %s", n, limit.String()))
	case q.Cmp(limit) > 0:
		c.invalid(at(p, child).Child("requests"), q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", n, limit.String()))
	}
}

// claimRefs checks that the claims of a container are declared by its pod, once.
func (c *checker) claimRefs(refs []corev1.ResourceClaim, claims *claimNames, p *field.Path) {
	seen := claimed{all: make(map[string]bool, len(refs)), below: make(map[string]int, len(refs))}
	for _, ref := range refs {
		seen.below[ref.Name] = 0
	}
	for i, ref := range refs {
		if ref.Name == "" {
			c.required(p.Index(i), "")
			continue
		}
		c.claimRefOnce(ref, seen, p.Index(i))
		if !claims.has(ref.Name) {
			e := field.NotFound(p.Index(i), ref.Name)
			e.Detail = claims.detail()
			c.add(e)
		}
	}
}

// claimed are the claims of a container: claims and, after a slash, requests of them.
type claimed struct {
	all   map[string]bool
	below map[string]int // of each claim that the container names: how many are requests of it
}

// longestClaim bounds the part of a name that is searched for slashes; longer texts are no names.
const longestClaim = 253

func (s claimed) add(key string) {
	s.all[key] = true
	for i := range min(len(key), longestClaim) {
		if key[i] != '/' {
			continue
		}
		if n, ok := s.below[key[:i]]; ok {
			s.below[key[:i]] = n + 1
		}
	}
}

// claimRefOnce refuses a claim, or a request of it, that overlaps an earlier one.
func (c *checker) claimRefOnce(ref corev1.ResourceClaim, seen claimed, p *field.Path) {
	if seen.all[ref.Name] {
		c.duplicate(p, ref.Name)
		return
	}
	key := ref.Name
	if ref.Request != "" {
		c.dnsLabel(p, "request", ref.Request)
		key += "/" + ref.Request
	}
	if seen.all[key] {
		c.duplicate(p, key)
		return
	}
	if ref.Request == "" {
		for range seen.below[ref.Name] {
			c.duplicate(p, ref.Name)
		}
	}
	seen.add(key)
}
