package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/kinds"
)

// OnlyGarbage reports whether an update changes nothing but what the garbage collector needs:
// finalizers and owner references. Plugins that ask for rights to what an object says let
// such updates pass.
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
