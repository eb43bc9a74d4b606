// Package storage holds the admission plugins of volumes and claims.
package storage

import (
	"context"
	"slices"

	"github.com/rowlock/rowlock/server/admission"
)

// Protection gives new volumes and claims a finalizer each, so that none goes while
// somebody uses it.
type Protection struct {
	// Classes protects VolumeAttributesClasses, too.
	Classes bool
}

var _ admission.Mutator = Protection{}

// Name implements admission.Plugin.
func (Protection) Name() string { return "StorageObjectInUseProtection" }

// Handles implements admission.Plugin.
func (Protection) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p Protection) Admit(_ context.Context, a *admission.Attributes) error {
	var finalizer string
	switch {
	case a.Is("", "persistentvolumes", ""):
		finalizer = "kubernetes.io/pv-protection"
	case a.Is("", "persistentvolumeclaims", ""):
		finalizer = "kubernetes.io/pvc-protection"
	case p.Classes && a.Is("storage.k8s.io", "volumeattributesclasses", ""):
		finalizer = "kubernetes.io/vac-protection"
	}
	m := a.Meta()
	if finalizer == "" || m == nil || slices.Contains(m.GetFinalizers(), finalizer) {
		return nil
	}
	m.SetFinalizers(append(slices.Clone(m.GetFinalizers()), finalizer))
	return nil
}
