package storage

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/admission"
)

const (
	claims       = "persistentvolumeclaims"
	classStorage = "storageclasses.storage.k8s.io"
)

// DefaultClass names the default class in new claims that name none.
func DefaultClass(objects admission.Objects) admission.Mutator {
	return admission.Change[*corev1.PersistentVolumeClaim]{
		Writes: admission.Writes{Plugin: "DefaultStorageClass", Operations: []admission.Operation{admission.Create}, Plural: claims},
		Apply: func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
			if _, named := claim.Annotations[corev1.BetaStorageClassAnnotation]; named || claim.Spec.StorageClassName != nil {
				return nil
			}
			class, err := admission.DefaultClass(ctx, objects, classStorage,
				"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
			if err != nil || class == nil {
				return err
			}
			name := class.GetName()
			claim.Spec.StorageClassName = &name
			return nil
		},
	}
}

// Resize lets claims grow only if their class has allowVolumeExpansion.
func Resize(objects admission.Objects) admission.Validator {
	return admission.Check[*corev1.PersistentVolumeClaim]{
		Writes: admission.Writes{Plugin: "PersistentVolumeClaimResize", Operations: []admission.Operation{admission.Update}, Plural: claims},
		Refuse: func(ctx context.Context, a *admission.Attributes, claim, old *corev1.PersistentVolumeClaim) error {
			return resize(ctx, objects, a, claim, old)
		},
	}
}

func resize(ctx context.Context, objects admission.Objects, a *admission.Attributes, claim, old *corev1.PersistentVolumeClaim) error {
	if old == nil {
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
		obj, err := objects.Get(ctx, classStorage, "", name)
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
