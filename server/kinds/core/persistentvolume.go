package core

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// volumeRules are the rules of PersistentVolumes where some gates are on.
type volumeRules struct {
	attributes bool
	now        bool // the rules after release 1.32
	moves      bool // the nodes of a volume may change
}

// PersistentVolume returns the strategy of PersistentVolumes.
func PersistentVolume(on kinds.Feature) kinds.Strategy {
	r := volumeRules{on(attributesGate), on.Has(release.KindRules133), on("MutablePVNodeAffinity")}
	return kinds.Typed[*corev1.PersistentVolume]{
		ValidateName:        apivalidation.NameIsDNSSubdomain,
		Meta:                &kinds.MetaRules{Wholes: 2},
		Default:             defaultVolume,
		PrepareForCreate:    r.prepareVolume,
		PrepareForUpdate:    r.prepareVolumeUpdate,
		Validate:            func(v *corev1.PersistentVolume) field.ErrorList { return r.validateVolume(v, nil) },
		ValidateUpdate:      r.validateVolumeUpdate,
		Warnings:            volumeWarnings,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		Status:              &kinds.Status[*corev1.PersistentVolume]{Prepare: prepareVolumeStatus},
	}.Strategy()
}

// PersistentVolumeColumns is their Table form.
var PersistentVolumeColumns = columns.Of(volumeCells, columns.Name(),
	columns.Text("Capacity", corev1.PersistentVolumeSpec{}.SwaggerDoc()["capacity"]),
	columns.Text("Access Modes", corev1.PersistentVolumeSpec{}.SwaggerDoc()["accessModes"]),
	columns.Text("Reclaim Policy", corev1.PersistentVolumeSpec{}.SwaggerDoc()["persistentVolumeReclaimPolicy"]),
	columns.Text("Status", corev1.PersistentVolumeStatus{}.SwaggerDoc()["phase"]),
	columns.Text("Claim", corev1.PersistentVolumeSpec{}.SwaggerDoc()["claimRef"]),
	columns.Text("StorageClass", "StorageClass of the pv"),
	columns.Text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
	columns.Text("Reason", corev1.PersistentVolumeStatus{}.SwaggerDoc()["reason"]),
	columns.Age(),
	columns.Wide(columns.Text("VolumeMode", corev1.PersistentVolumeSpec{}.SwaggerDoc()["volumeMode"])))

func volumeCells(v *corev1.PersistentVolume, now time.Time) []any {
	claim := ""
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	size := v.Spec.Capacity[corev1.ResourceStorage]
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = v.Spec.StorageClassName
	}
	return []any{
		v.Name, size.String(), accessModesCell(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase, claim,
		class, valueOr(v.Spec.VolumeAttributesClassName, "<unset>"), v.Status.Reason,
		columns.Since(v.CreationTimestamp, now), string(valueOr(v.Spec.VolumeMode, "<unset>")),
	}
}

func valueOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

// accessModesCell abbreviates access modes, in an order of its own.
func accessModesCell(modes []corev1.PersistentVolumeAccessMode) string {
	var short []string
	for _, known := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"},
	} {
		for _, m := range modes {
			if m == known.mode {
				short = append(short, known.short)
				break
			}
		}
	}
	return strings.Join(short, ",")
}

func defaultVolume(v *corev1.PersistentVolume) {
	s := &v.Spec
	podspec.DefaultResources(s.Capacity)
	v.Status.Phase = cmp.Or(v.Status.Phase, corev1.VolumePending)
	s.PersistentVolumeReclaimPolicy = cmp.Or(s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	rules.DefaultTo(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	podspec.DefaultPersistentVolumeSource(&s.PersistentVolumeSource)
}

func (r volumeRules) prepareVolume(v *corev1.PersistentVolume) {
	v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: new(metav1.Now().Rfc3339Copy())}
	if !r.attributes {
		v.Spec.VolumeAttributesClassName = nil
	}
}

func (r volumeRules) prepareVolumeUpdate(v, old *corev1.PersistentVolume) {
	if !r.attributes && old.Spec.VolumeAttributesClassName == nil {
		v.Spec.VolumeAttributesClassName = nil
	}
}

// prepareVolumeStatus keeps the time of the last phase change right where the
// client does not.
func prepareVolumeStatus(v, old *corev1.PersistentVolume) {
	last := v.Status.LastPhaseTransitionTime
	switch {
	case v.Status.Phase == old.Status.Phase && last == nil:
		v.Status.LastPhaseTransitionTime = old.Status.LastPhaseTransitionTime
	case v.Status.Phase != old.Status.Phase && (last == nil || last.Equal(old.Status.LastPhaseTransitionTime)):
		v.Status.LastPhaseTransitionTime = new(metav1.Now().Rfc3339Copy())
	}
}

// validateVolume checks a volume that replaces old, which is nil on create.
func (r volumeRules) validateVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	errs := r.validateVolumeSpec(v, old)
	if _, ok := v.Annotations[corev1.MountOptionAnnotation]; ok && !takesMountOptions(&v.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(metaPath.Child("annotations", corev1.MountOptionAnnotation), "may not specify mount options for this volume type"))
	}
	return errs
}

func (r volumeRules) validateVolumeSpec(v, old *corev1.PersistentVolume) field.ErrorList {
	s := &v.Spec
	errs := rules.RequiredIf(nil, len(s.AccessModes) == 0, specPath.Child("accessModes"), "")
	errs = append(errs, podspec.ValidateAccessModes(s.AccessModes, specPath)...)
	errs = append(errs, validateVolumeCapacity(s.Capacity, specPath.Child("capacity"))...)
	if s.PersistentVolumeReclaimPolicy != "" {
		errs = append(errs, rules.OneOf(s.PersistentVolumeReclaimPolicy, specPath.Child("persistentVolumeReclaimPolicy"),
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	}
	if at := specPath.Child("nodeAffinity"); r.now && requiredNodes(v) != nil && (old == nil || !invalidNodes(requiredNodes(old))) {
		errs = append(errs, podspec.ValidateNodeSelector(requiredNodes(v), at.Child("required"))...)
	} else {
		errs = append(errs, rules.OptionalPtr(s.NodeAffinity, at, podspec.ValidateVolumeNodeAffinity)...)
	}
	errs = append(errs, podspec.ValidatePersistentVolumeSource(s, v.Name, specPath, r.now)...)
	errs = rules.ForbiddenIf(errs, s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle, specPath.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	if s.StorageClassName != "" {
		errs = append(errs, rules.Subdomain(s.StorageClassName, specPath.Child("storageClassName"))...)
	}
	if s.VolumeMode != nil {
		errs = append(errs, rules.OneOf(*s.VolumeMode, specPath.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	if s.VolumeAttributesClassName != nil && r.attributes {
		errs = append(errs, validateAttributes(s)...)
	}
	return errs
}

// validateAttributes checks the class of a volume's attributes, which CSI drivers alone can
// change.
func validateAttributes(s *corev1.PersistentVolumeSpec) field.ErrorList {
	errs := rules.RequiredThen(*s.VolumeAttributesClassName, specPath.Child("volumeAttributesClassName"), "an empty string is disallowed", rules.Subdomain)
	return rules.RequiredIf(errs, s.CSI == nil, specPath.Child("csi"), "has to be specified when using volumeAttributesClassName")
}

func requiredNodes(v *corev1.PersistentVolume) *corev1.NodeSelector {
	if v.Spec.NodeAffinity == nil {
		return nil
	}
	return v.Spec.NodeAffinity.Required
}

// invalidNodes reports whether a choice of nodes has a value that no label has.
func invalidNodes(s *corev1.NodeSelector) bool {
	if s == nil {
		return false
	}
	for _, t := range s.NodeSelectorTerms {
		for _, r := range t.MatchExpressions {
			if slices.ContainsFunc(r.Values, func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 }) {
				return true
			}
		}
	}
	return false
}

func validateVolumeCapacity(capacity corev1.ResourceList, path *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, len(capacity) == 0, path, "")
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		errs = append(errs, field.NotSupported(path, rules.Shown(capacity), []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range rules.Until(&errs, sorted(capacity)) {
		amount, p := capacity[name], path.Key(string(name))
		if amount.Value() < 0 {
			errs = append(errs, field.Invalid(p, amount.Value(), "must be a valid resource quantity"))
		}
		errs = append(errs, validatePositive(amount, p)...)
	}
	return errs
}

func takesMountOptions(s *corev1.PersistentVolumeSource) bool {
	return s.GCEPersistentDisk != nil || s.AWSElasticBlockStore != nil || s.Glusterfs != nil || s.NFS != nil || s.RBD != nil ||
		s.Quobyte != nil || s.ISCSI != nil || s.Cinder != nil || s.CephFS != nil || s.AzureFile != nil || s.VsphereVolume != nil ||
		s.AzureDisk != nil || s.PhotonPersistentDisk != nil
}

// validateVolumeUpdate checks everything twice, as clients see it.
func (r volumeRules) validateVolumeUpdate(v, old *corev1.PersistentVolume) field.ErrorList {
	errs := append(r.validateVolume(v, old), r.validateVolumeSpec(v, old)...)
	source := v.Spec.PersistentVolumeSource
	if csi := source.CSI; csi != nil && csi.ControllerExpandSecretRef != nil && old.Spec.CSI != nil && old.Spec.CSI.ControllerExpandSecretRef == nil {
		// This secret may be added later.
		source.CSI = csi.DeepCopy()
		source.CSI.ControllerExpandSecretRef = nil
	}
	if !rules.Same(source, old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+difference(old.Spec.PersistentVolumeSource, source, r.now)))
	}
	errs = append(errs, rules.Immutable(v.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if !r.moves && old.Spec.NodeAffinity != nil && !sameAffinity(v.Spec.NodeAffinity, old.Spec.NodeAffinity) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), rules.Shown(v.Spec.NodeAffinity),
			apivalidation.FieldImmutableErrorMsg+", except for updating from beta label to GA"))
	}
	return append(errs, attributesUpdate(v.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName, r.attributes)...)
}

// difference shows the changes of a structure, for people. now is the form of releases after 1.32.
func difference(old, value any, now bool) string {
	if now {
		return rules.DifferenceSince133(old, value)
	}
	return strings.ReplaceAll(rules.Difference(old, value), "v1.", "core.")
}

func volumeWarnings(v, _ *corev1.PersistentVolume) []string {
	var warnings []string
	warn := func(when bool, format string, args ...any) {
		if when {
			warnings = append(warnings, fmt.Sprintf(format, args...))
		}
	}
	has := func(annotation string) bool { _, ok := v.Annotations[annotation]; return ok }
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		warnings = append(warnings, affinityWarnings(v.Spec.NodeAffinity.Required, specPath.Child("nodeAffinity", "required"))...)
	}
	warn(has(corev1.BetaStorageClassAnnotation), "metadata.annotations[%s]: deprecated since v1.8; use \"storageClassName\" attribute instead", corev1.BetaStorageClassAnnotation)
	warn(has(corev1.MountOptionAnnotation), "metadata.annotations[%s]: deprecated since v1.31; use \"mountOptions\" attribute instead", corev1.MountOptionAnnotation)
	warn(v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle,
		"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	warn(v.Spec.CephFS != nil, "spec.cephfs: deprecated in v1.28, non-functional in v1.31+")
	warn(v.Spec.PhotonPersistentDisk != nil, "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+")
	warn(v.Spec.ScaleIO != nil, "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+")
	warn(v.Spec.StorageOS != nil, "spec.storageOS: deprecated in v1.22, non-functional in v1.25+")
	warn(v.Spec.Glusterfs != nil, "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+")
	warn(v.Spec.RBD != nil, "spec.rbd: deprecated in v1.28, non-functional in v1.31+")
	return warnings
}
