package storage

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/admission"
)

const classStorage = "storageclasses.storage.k8s.io"

// DefaultClass names the default class in new claims that name none.
type DefaultClass struct{ Objects admission.Objects }

var _ admission.Mutator = DefaultClass{}

// Name implements admission.Plugin.
func (DefaultClass) Name() string { return "DefaultStorageClass" }

// Handles implements admission.Plugin.
func (DefaultClass) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p DefaultClass) Admit(ctx context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok || !a.Is("", "persistentvolumeclaims", "") || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, old := claim.Annotations[corev1.BetaStorageClassAnnotation]; old {
		return nil
	}
	class, err := admission.DefaultClass(ctx, p.Objects, classStorage,
		"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
	if err != nil || class == nil {
		return err
	}
	name := class.GetName()
	claim.Spec.StorageClassName = &name
	return nil
}

// Resize lets claims grow only where their class says that it can make volumes grow.
type Resize struct{ Objects admission.Objects }

var _ admission.Validator = Resize{}

// Name implements admission.Plugin.
func (Resize) Name() string { return "PersistentVolumeClaimResize" }

// Handles implements admission.Plugin.
func (Resize) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Resize) Validate(ctx context.Context, a *admission.Attributes) error {
	claim, ok1 := a.Object.(*corev1.PersistentVolumeClaim)
	old, ok2 := a.Old.(*corev1.PersistentVolumeClaim)
	if !ok1 || !ok2 || !a.Is("", "persistentvolumeclaims", "") {
		return nil
	}
	size, before := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(before) <= 0 {
		return nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		return a.Forbid(errors.New("Only bound persistent volume claims can be expanded")) //nolint:staticcheck // clients match on it
	}
	if name := className(claim); name != "" && name == className(old) {
		obj, err := p.Objects.Get(ctx, classStorage, "", name)
		if err != nil {
			return err
		}
		if class, ok := obj.(*storagev1.StorageClass); ok && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
			return nil
		}
	}
	return a.Forbid(errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
}

func className(claim *corev1.PersistentVolumeClaim) string {
	if name, old := claim.Annotations[corev1.BetaStorageClassAnnotation]; old {
		return name
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}
