// Package storage holds the admission plugins of volumes and claims: the default class, growth, and the finalizers that
// protect those in use.
package storage

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
)

// Protection gives new volumes and claims a finalizer each, and VolumeAttributesClasses too where classes is set, so
// that none is deleted while it is used.
func Protection(classes bool) admission.Protection {
	finalizers := map[schema.GroupResource]string{
		{Resource: "persistentvolumes"}: "kubernetes.io/pv-protection",
		{Resource: claims}:              "kubernetes.io/pvc-protection",
	}
	if classes {
		finalizers[schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}] = "kubernetes.io/vac-protection"
	}
	return admission.Protection{Plugin: "StorageObjectInUseProtection", Finalizers: finalizers}
}
