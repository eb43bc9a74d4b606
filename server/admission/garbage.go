package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/kinds"
)

// OnlyGarbage reports whether an update changes only what the garbage collector changes: finalizers and owner
// references. Plugins that require rights because of an object's content admit such updates.
func (a *Attributes) OnlyGarbage() bool {
	next, ok := a.Object.(kinds.Object)
	if !ok || a.Old == nil {
		return false
	}
	old, ok := a.Old.(kinds.Object)
	if !ok {
		return false
	}
	next, old = next.DeepCopyObject().(kinds.Object), old.DeepCopyObject().(kinds.Object)
	next.SetFinalizers(old.GetFinalizers())
	next.SetOwnerReferences(old.GetOwnerReferences())
	next.SetManagedFields(old.GetManagedFields())
	return equality.Semantic.DeepEqual(next, old)
}
