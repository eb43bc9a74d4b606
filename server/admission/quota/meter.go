package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// meter computes the usage of objects of one resource.
type meter struct {
	updates bool // updates can change the use, not creates alone
	resizes bool // so can the subresource resize
	// moves reports whether an update of a subresource, or of the object for "", takes an object to other quotas;
	// nil: none does.
	moves   func(obj, old runtime.Object) bool
	movesBy string
	// names are the quota names under which each object of the resource counts as one; nil: none.
	names []corev1.ResourceName
	// counts reports whether a name of a quota is about this resource; nil: names do.
	counts func(name corev1.ResourceName) bool
	// use returns the usage of an object; the caller owns the list.
	use func(obj runtime.Object) corev1.ResourceList
	// requires returns the fields that an object must set because of a quota; nil: none.
	requires func(names []corev1.ResourceName, obj runtime.Object) error
	// inScope reports whether an object is in a scope; nil: it is in none.
	inScope func(s corev1.ScopedResourceSelectorRequirement, obj runtime.Object) (bool, error)
}

func (m *meter) handles(a *admission.Attributes) bool {
	switch {
	case a.Subresource == "" && (a.Operation == admission.Create || m.updates):
		return true
	case a.Subresource == "resize":
		return m.resizes && a.Operation == admission.Update
	}
	return m.moves != nil && a.Subresource == m.movesBy && a.Operation == admission.Update && m.moves(a.Object, a.Old)
}

// counted returns the names of a quota that are about this resource.
func (m *meter) counted(hard corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range m.names { // a quota may have tens of thousands of others
		if _, ok := hard[name]; ok {
			names = append(names, name)
		}
	}
	if m.names != nil {
		return names
	}
	for name := range hard {
		if m.counts(name) {
			names = append(names, name)
		}
	}
	return names
}

// inScopes returns the scopes of a quota that an object is in, and whether those are
// all that the quota has.
func (m *meter) inScopes(q *corev1.ResourceQuota, obj runtime.Object) (in []corev1.ScopedResourceSelectorRequirement, all bool, err error) {
	var asked []corev1.ScopedResourceSelectorRequirement
	for _, s := range q.Spec.Scopes {
		asked = append(asked, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		asked = append(asked, q.Spec.ScopeSelector.MatchExpressions...)
	}
	in, err = m.within(asked, obj)
	return in, len(in) == len(asked), err
}

func (m *meter) within(asked []corev1.ScopedResourceSelectorRequirement, obj runtime.Object) (in []corev1.ScopedResourceSelectorRequirement, err error) {
	if m.inScope == nil {
		return nil, nil
	}
	for _, s := range asked {
		ok, err := m.inScope(s, obj)
		if err != nil {
			return nil, fmt.Errorf("error on matching scope %v: %w", s, err)
		}
		if ok {
			in = append(in, s)
		}
	}
	return in, nil
}

// uncounted are namespaced resources that quotas cannot count: most are not stored, and events expire.
var uncounted = map[schema.GroupResource]bool{
	{Resource: "bindings"}:                       true,
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: true,
}

// measured are resources of which more is counted than how many there are, and the names
// of quotas that are about each.
var measured = map[schema.GroupResource]func(corev1.ResourceName) bool{
	{Resource: "pods"}:                                     countsPods,
	{Resource: "services"}:                                 countsServices,
	{Resource: "persistentvolumeclaims"}:                   countsClaims,
	{Group: "resource.k8s.io", Resource: "resourceclaims"}: countsDevices,
}

// aliases are names for numbers of objects that are older than count/RESOURCE.
var aliases = map[schema.GroupResource]corev1.ResourceName{
	{Resource: "configmaps"}:             corev1.ResourceConfigMaps,
	{Resource: "resourcequotas"}:         corev1.ResourceQuotas,
	{Resource: "replicationcontrollers"}: corev1.ResourceReplicationControllers,
	{Resource: "secrets"}:                corev1.ResourceSecrets,
}

// count returns the name of a quota for the number of objects.
func count(r schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName("count/" + r.String())
}

// meters holds the meters of all resources.
type meters struct {
	now     func() time.Time
	whole   bool // pods may have resources as a whole
	resized bool // pods may be resized
	moves   bool // see Rules
}

func (p meters) meter(r schema.GroupResource) *meter {
	if uncounted[r] {
		return nil
	}
	switch r {
	case schema.GroupResource{Resource: "pods"}:
		m := &meter{resizes: true, counts: countsPods, use: p.usePod, requires: p.requirePod, inScope: p.podInScope}
		if p.moves {
			m.moves = func(obj, old runtime.Object) bool { return terminates(obj) != terminates(old) }
		}
		return m
	case schema.GroupResource{Resource: "services"}:
		return &meter{updates: true, counts: countsServices, use: useService}
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		m := &meter{updates: true, counts: countsClaims, use: useClaim, inScope: claimInScope}
		if p.moves {
			m.moves, m.movesBy = claimMoves, "status"
		}
		return m
	case schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}:
		return &meter{updates: true, counts: countsDevices, use: useDevices}
	}
	names := []corev1.ResourceName{count(r)}
	if alias := aliases[r]; alias != "" {
		names = append(names, alias)
	}
	return &meter{
		names: names,
		use: func(runtime.Object) corev1.ResourceList {
			l := corev1.ResourceList{}
			for _, n := range names {
				l[n] = number(1)
			}
			return l
		},
	}
}

func number(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

const countServices corev1.ResourceName = "count/services"

func countsServices(name corev1.ResourceName) bool {
	switch name {
	case countServices, corev1.ResourceServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

// useService counts the requested node ports: they may not be allocated yet.
func useService(obj runtime.Object) corev1.ResourceList {
	l := corev1.ResourceList{countServices: number(1), corev1.ResourceServices: number(1)}
	s, ok := obj.(*corev1.Service)
	if !ok {
		return l
	}
	ports := len(s.Spec.Ports)
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		l[corev1.ResourceServicesNodePorts] = number(ports)
	case corev1.ServiceTypeLoadBalancer:
		if given := s.Spec.AllocateLoadBalancerNodePorts; given != nil && !*given {
			ports = 0
			for i := range s.Spec.Ports {
				if s.Spec.Ports[i].NodePort != 0 {
					ports++
				}
			}
		}
		l[corev1.ResourceServicesNodePorts] = number(ports)
		l[corev1.ResourceServicesLoadBalancers] = number(1)
	}
	return l
}

const (
	countClaims corev1.ResourceName = "count/persistentvolumeclaims"
	// ofClass follows the name of a storage class in the resources counted for that class.
	ofClass = ".storageclass.storage.k8s.io/"
)

func countsClaims(name corev1.ResourceName) bool {
	switch name {
	case countClaims, corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage:
		return true
	}
	return strings.HasSuffix(string(name), ofClass+string(corev1.ResourcePersistentVolumeClaims)) ||
		strings.HasSuffix(string(name), ofClass+string(corev1.ResourceRequestsStorage))
}

// claimInScope reports whether a claim is in a scope of VolumeAttributesClasses: requested, current, or pending ones.
func claimInScope(s corev1.ScopedResourceSelectorRequirement, obj runtime.Object) (bool, error) {
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || s.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false, nil
	}
	classes := classesOf(c)
	if len(classes) == 0 {
		return classSelected(s, "")
	}
	for _, class := range classes {
		if in, err := classSelected(s, class); in || err != nil {
			return in, err
		}
	}
	return false, nil
}

// classesOf returns the requested, current and pending VolumeAttributesClasses of a claim.
func classesOf(c *corev1.PersistentVolumeClaim) []string {
	var classes []string
	for _, class := range []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName} {
		if class != nil && *class != "" {
			classes = append(classes, *class)
		}
	}
	if m := c.Status.ModifyVolumeStatus; m != nil && m.TargetVolumeAttributesClassName != "" {
		classes = append(classes, m.TargetVolumeAttributesClassName)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// claimMoves reports whether a claim has other classes of attributes, or has got or lost storage.
func claimMoves(obj, old runtime.Object) bool {
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	before, was := old.(*corev1.PersistentVolumeClaim)
	if !ok || !was {
		return false
	}
	given, had := c.Status.AllocatedResources[corev1.ResourceStorage], before.Status.AllocatedResources[corev1.ResourceStorage]
	return given.Cmp(had) != 0 || !slices.Equal(classesOf(c), classesOf(before))
}

func useClaim(obj runtime.Object) corev1.ResourceList {
	l := corev1.ResourceList{countClaims: number(1), corev1.ResourcePersistentVolumeClaims: number(1)}
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return l
	}
	class := c.Annotations[corev1.BetaStorageClassAnnotation]
	if _, old := c.Annotations[corev1.BetaStorageClassAnnotation]; !old && c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	if class != "" {
		l[corev1.ResourceName(class+ofClass)+corev1.ResourcePersistentVolumeClaims] = number(1)
	}
	storage, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return l
	}
	storage = storage.DeepCopy()
	storage.RoundUp(0) // quotas hold whole bytes
	// A volume that is being resized counts as large as it may become.
	if given, ok := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && given.Cmp(storage) > 0 {
		storage = given.DeepCopy()
		storage.RoundUp(0)
	}
	l[corev1.ResourceRequestsStorage] = storage
	if class != "" {
		l[corev1.ResourceName(class+ofClass)+corev1.ResourceRequestsStorage] = storage
	}
	return l
}

const countDevices corev1.ResourceName = "count/resourceclaims.resource.k8s.io"

func countsDevices(name corev1.ResourceName) bool {
	return name == countDevices || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass)
}

// useDevices counts devices by their class.
func useDevices(obj runtime.Object) corev1.ResourceList {
	l := corev1.ResourceList{countDevices: number(1)}
	c, ok := obj.(*resourcev1beta1.ResourceClaim)
	if !ok {
		return l
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if len(r.FirstAvailable) == 0 {
			podspec.AddUp(l, devicesOf(r.DeviceClassName, r.AllocationMode, r.Count))
			continue
		}
		most := corev1.ResourceList{} // of each class, whichever alternative there is
		for j := range r.FirstAvailable {
			s := &r.FirstAvailable[j]
			for name, q := range devicesOf(s.DeviceClassName, s.AllocationMode, s.Count) {
				if have := most[name]; q.Cmp(have) > 0 {
					most[name] = q
				}
			}
		}
		podspec.AddUp(l, most)
	}
	return l
}

// devicesOf returns the number of requested devices of a class.
func devicesOf(class string, mode resourcev1beta1.DeviceAllocationMode, count int64) corev1.ResourceList {
	switch mode {
	case resourcev1beta1.DeviceAllocationModeExactCount:
	case resourcev1beta1.DeviceAllocationModeAll: // as many as it can be at most
		count = resourcev1beta1.AllocationResultsMaxSize
	default:
		count = 0
	}
	return corev1.ResourceList{corev1.ResourceName(class + corev1.ResourceClaimsPerClass): number(int(count))}
}
