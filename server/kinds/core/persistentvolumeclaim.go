package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// claimRules are the rules of PersistentVolumeClaims where some gates are on.
type claimRules struct {
	attributes, anySource, otherNamespaces bool
	now                                    bool // the rules after release 1.32
}

// attributesGate is of classes of attributes, in claims and in volumes.
const attributesGate = "VolumeAttributesClass"

// PersistentVolumeClaim returns the strategy of PersistentVolumeClaims.
func PersistentVolumeClaim(on kinds.Feature) kinds.Strategy {
	r := claimRules{now: on.Has(release.KindRules133), attributes: on(attributesGate), anySource: on("AnyVolumeDataSource"), otherNamespaces: on("CrossNamespaceVolumeDataSource")}
	return kinds.Typed[*corev1.PersistentVolumeClaim]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                r.meta(),
		Default:             defaultClaim,
		PrepareForCreate:    r.prepareClaim,
		PrepareForUpdate:    r.prepareClaimUpdate,
		Validate:            func(c *corev1.PersistentVolumeClaim) field.ErrorList { return r.validateClaim(c, nil) },
		ValidateUpdate:      r.validateClaimUpdate,
		Warnings:            claimWarnings,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		Status: &kinds.Status[*corev1.PersistentVolumeClaim]{
			Prepare: func(c, old *corev1.PersistentVolumeClaim) {
				if !r.attributes && old.Status.CurrentVolumeAttributesClassName == nil {
					c.Status.CurrentVolumeAttributesClassName = nil
				}
				if !r.attributes && old.Status.ModifyVolumeStatus == nil {
					c.Status.ModifyVolumeStatus = nil
				}
			},
			Validate: r.validateStatus,
		},
	}.Strategy()
}

// meta returns the rules for metadata.
func (r claimRules) meta() *kinds.MetaRules {
	if r.now {
		return &kinds.WholeMeta
	}
	return &kinds.MetaRules{Updates: 1, Wholes: 2}
}

// PersistentVolumeClaimColumns is their Table form.
var PersistentVolumeClaimColumns = columns.Of(claimCells, columns.Name(),
	columns.Text("Status", corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["phase"]),
	columns.Text("Volume", corev1.PersistentVolumeClaimSpec{}.SwaggerDoc()["volumeName"]),
	columns.Text("Capacity", corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["capacity"]),
	columns.Text("Access Modes", corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["accessModes"]),
	columns.Text("StorageClass", "StorageClass of the pvc"),
	columns.Text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
	columns.Age(),
	columns.Wide(columns.Text("VolumeMode", corev1.PersistentVolumeClaimSpec{}.SwaggerDoc()["volumeMode"])))

func claimCells(c *corev1.PersistentVolumeClaim, now time.Time) []any {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = size.String(), accessModesCell(c.Status.AccessModes)
	}
	class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = valueOr(c.Spec.StorageClassName, "")
	}
	return []any{
		c.Name, phase, c.Spec.VolumeName, capacity, modes, class, valueOr(c.Spec.VolumeAttributesClassName, "<unset>"),
		columns.Since(c.CreationTimestamp, now), string(valueOr(c.Spec.VolumeMode, "<unset>")),
	}
}

func defaultClaim(c *corev1.PersistentVolumeClaim) {
	podspec.DefaultResources(c.Spec.Resources.Limits, c.Spec.Resources.Requests, c.Status.Capacity, c.Status.AllocatedResources)
	c.Status.Phase = cmp.Or(c.Status.Phase, corev1.ClaimPending)
	rules.DefaultTo(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func (r claimRules) prepareClaim(c *corev1.PersistentVolumeClaim) {
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	r.dropClaimFields(&c.Spec, nil)
	r.normalizeSources(&c.Spec)
}

func (r claimRules) prepareClaimUpdate(c, old *corev1.PersistentVolumeClaim) {
	r.dropClaimFields(&c.Spec, &old.Spec)
	r.normalizeSources(&c.Spec)
}

// dropClaimFields removes fields that are not served, unless old has them: attribute classes,
// sources in other namespaces, and sources that the older field cannot name.
func (r claimRules) dropClaimFields(s, old *corev1.PersistentVolumeClaimSpec) {
	if !r.attributes && (old == nil || old.VolumeAttributesClassName == nil) {
		s.VolumeAttributesClassName = nil
	}
	ref, had := s.DataSourceRef, old != nil && old.DataSourceRef != nil
	switch {
	case ref == nil || had:
	case !r.anySource, valueOr(ref.Namespace, "") != "" && !r.otherNamespaces:
		s.DataSourceRef = nil
	}
	inUse := old != nil && (old.DataSource != nil || old.DataSourceRef != nil)
	if s.DataSource != nil && s.DataSourceRef == nil && !inUse && !isVolumeData(s.DataSource) {
		s.DataSource = nil
	}
}

func isVolumeData(s *corev1.TypedLocalObjectReference) bool {
	switch group := valueOr(s.APIGroup, ""); group {
	case "":
		return s.Kind == "PersistentVolumeClaim"
	case "snapshot.storage.k8s.io":
		return s.Kind == "VolumeSnapshot"
	}
	return false
}

// normalizeSources keeps the older and the newer field for a source the same.
func (r claimRules) normalizeSources(s *corev1.PersistentVolumeClaimSpec) {
	ref := s.DataSourceRef
	switch {
	case !r.anySource, ref != nil && valueOr(ref.Namespace, "") != "":
	case ref == nil && s.DataSource != nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: s.DataSource.APIGroup, Kind: s.DataSource.Kind, Name: s.DataSource.Name}
	case ref != nil && s.DataSource == nil:
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// validateClaim checks a claim that replaces old, which is nil on create.
func (r claimRules) validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	o := podspec.ClaimOptions{AttributesClass: r.attributes}
	if old != nil {
		s := &old.Spec
		o.AllowInvalidLabelValueInSelector = rules.SelectorInvalid(s.Selector)
		o.AllowInvalidDataSourceGroup = s.DataSource != nil && s.DataSource.APIGroup != nil || s.DataSourceRef != nil && s.DataSourceRef.APIGroup != nil
	}
	return podspec.ValidateClaimSpec(&c.Spec, specPath, o)
}

// validateClaimUpdate checks everything, twice in release 1.32, as clients see it, and the changes: the name
// of the volume may be set once, the size while bound.
func (r claimRules) validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := r.validateClaim(c, old)
	if !r.now {
		errs = rules.Twice(errs)
	}
	now, before := c.DeepCopy(), old.DeepCopy()
	before.Spec.VolumeName = cmp.Or(before.Spec.VolumeName, now.Spec.VolumeName)
	errs = append(errs, adoptClass(now, before)...)
	if c.Status.Phase == corev1.ClaimBound && now.Spec.Resources.Requests != nil {
		now.Spec.Resources.Requests[corev1.ResourceStorage] = old.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if c.Status.Phase == corev1.ClaimBound && (r.now || now.Spec.VolumeAttributesClassName != nil) {
		now.Spec.VolumeAttributesClassName = before.Spec.VolumeAttributesClassName
	}
	if !rules.Same(now.Spec, before.Spec) {
		errs = append(errs, field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+difference(before.Spec, now.Spec, r.now)))
	}
	size, granted := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	errs = rules.ForbiddenIf(errs, size.Cmp(old.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 && size.Cmp(granted) <= 0, specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity")
	errs = append(errs, rules.Immutable(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	class, was := c.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName
	if r.now {
		return append(errs, r.classUpdate(class, was, old.Status.CurrentVolumeAttributesClassName)...)
	}
	errs = append(errs, attributesUpdate(class, was, r.attributes)...)
	return rules.ForbiddenIf(errs, r.attributes && was != nil && class != nil && *was != "" && *class == "", specPath.Child("volumeAttributesClassName"), "update from non-nil value to an empty string is forbidden")
}

// classUpdate lets a class of attributes change where they are served, and not go once it is applied.
func (r claimRules) classUpdate(class, was, applied *string) field.ErrorList {
	p := specPath.Child("volumeAttributesClassName")
	if rules.Same(class, was) {
		return nil
	}
	errs := rules.ForbiddenIf(nil, !r.attributes, p, "update is forbidden when the VolumeAttributesClass feature gate is disabled")
	if applied == nil || !r.attributes && was == nil {
		return errs
	}
	errs = rules.ForbiddenIf(errs, class == nil, p, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	return rules.ForbiddenIf(errs, class != nil && *class == "", p, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
}

// attributesUpdate lets a class of attributes change where they are served, and not go.
func attributesUpdate(class, was *string, served bool) field.ErrorList {
	p := specPath.Child("volumeAttributesClassName")
	switch {
	case rules.Same(class, was):
		return nil
	case !served:
		return field.ErrorList{field.Forbidden(p, "update is forbidden when the VolumeAttributesClass feature gate is disabled")}
	case class == nil:
		return field.ErrorList{field.Forbidden(p, "update from non-nil value to nil is forbidden")}
	}
	return nil
}

// adoptClass lets a claim get its storage class if it had none, or move it from the former annotation. It
// changes now and before so that permitted changes do not count as differences.
func adoptClass(now, before *corev1.PersistentVolumeClaim) field.ErrorList {
	const annotation = corev1.BetaStorageClassAnnotation
	was, had := before.Annotations[annotation]
	is, has := now.Annotations[annotation]
	class := now.Spec.StorageClassName
	unset := before.Spec.StorageClassName == nil && class != nil
	if had && unset && *class == was && (!has || is == was) {
		now.Spec.StorageClassName = nil
		return nil
	}
	if unset && (!had || *class == was) {
		now.Spec.StorageClassName = nil
	}
	return rules.InvalidIf(nil, is != was, metaPath.Child("annotations", annotation), is, apivalidation.FieldImmutableErrorMsg)
}

var resizeStatuses = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
}

func (r claimRules) validateStatus(c, _ *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := rules.RequiredIf(nil, len(c.Spec.AccessModes) == 0, field.NewPath("Spec", "accessModes"), "")
	for _, name := range rules.Until(&errs, sorted(c.Status.Capacity)) {
		errs = append(errs, validSize(c.Status.Capacity[name], statusPath.Child("capacity").Key(string(name)))...)
	}
	path := statusPath.Child("allocatedResourceStatus")
	if r.now {
		path = statusPath.Child("allocatedResourceStatuses")
	}
	for _, name := range rules.Until(&errs, sorted(c.Status.AllocatedResourceStatuses)) {
		errs = append(errs, claimResource(name, path)...)
		if !slices.Contains(resizeStatuses, c.Status.AllocatedResourceStatuses[name]) {
			errs = append(errs, field.NotSupported(path, name, slices.Sorted(slices.Values(resizeStatuses))))
		}
	}
	path = statusPath.Child("allocatedResources")
	for _, name := range rules.Until(&errs, sorted(c.Status.AllocatedResources)) {
		if wrong := claimResource(name, path); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		errs = append(errs, validSize(c.Status.AllocatedResources[name], path.Key(string(name)))...)
	}
	return errs
}

func validSize(amount resource.Quantity, path *field.Path) field.ErrorList {
	if amount.Value() < 0 {
		return field.ErrorList{field.Invalid(path, amount.Value(), "must be a valid resource quantity")}
	}
	return nil
}

func claimResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	if messages := validation.IsQualifiedName(string(name)); len(messages) > 0 {
		return rules.Messages(path, string(name), messages)
	}
	if podspec.IsNativeResource(name) && name != corev1.ResourceStorage {
		return field.ErrorList{field.NotSupported(path, string(name), []corev1.ResourceName{corev1.ResourceStorage})}
	}
	return nil
}

func claimWarnings(c, _ *corev1.PersistentVolumeClaim) []string {
	var warnings []string
	if _, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: deprecated since v1.8; use \"storageClassName\" attribute instead", corev1.BetaStorageClassAnnotation))
	}
	return append(warnings, podspec.ClaimSpecWarnings(&c.Spec, specPath)...)
}
