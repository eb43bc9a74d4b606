package admission

import "k8s.io/apimachinery/pkg/runtime/schema"

// Elsewhere finds the resource whose objects are of a kind that an aggregated server serves,
// by what that server says. What it names is of the group version of the kind, whatever the
// server says; ok is false where there is none. A nil Elsewhere knows none.
type Elsewhere func(schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool)

// Find is like a call of the function, which may be nil.
func (e Elsewhere) Find(kind schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	if e == nil {
		return what, false, false
	}
	return e(kind)
}
