package admission

import "k8s.io/apimachinery/pkg/runtime/schema"

// Elsewhere finds the resource of a kind that an aggregated server serves, from that server's discovery. The
// result has the group version of the kind, whatever the server states; ok is false if there is none. A nil
// Elsewhere finds nothing.
type Elsewhere func(schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool)

// Find is like a call of the function, which may be nil.
func (e Elsewhere) Find(kind schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	if e == nil {
		return what, false, false
	}
	return e(kind)
}
