package admission

import "k8s.io/apimachinery/pkg/runtime/schema"

// RemoteKinds finds the resource of a kind that an aggregated server serves, from that server's discovery. The
// result has the group version of the kind, whatever the server states; ok is false if there is none. A nil
// RemoteKinds finds nothing.
type RemoteKinds func(schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool)

// Find is like a call of the function, which may be nil.
func (e RemoteKinds) Find(kind schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	if e == nil {
		return what, false, false
	}
	return e(kind)
}
