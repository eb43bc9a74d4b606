package verbs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// namespaces is the storage key of namespaces, which go in a way of their own: by
// finalizers in their spec, after everything in them.
const namespaces = "namespaces"

// namespaceEmptied says whether a namespace has no finalizer left in its spec.
func namespaceEmptied(obj kinds.Object) bool {
	ns, ok := obj.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) == 0
}

// terminateNamespace starts the end of a namespace, or leaves it alone while its
// spec has finalizers. With neither to do it returns nil, and the namespace goes
// as other objects do.
func (h *Handler) terminateNamespace(ctx context.Context, c *Call, key sqlstore.Key, item *cache.Item, obj kinds.Object, o *metav1.DeleteOptions, in intent) (*removal, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, nil
	}
	if ns.DeletionTimestamp == nil {
		ns.DeletionTimestamp = &metav1.Time{Time: h.now().UTC().Truncate(time.Second)}
		ns.Status.Phase = corev1.NamespaceTerminating
		if finalizers := keepers(c.Resource.Storage, obj, o); !sameSet(finalizers, ns.Finalizers) {
			ns.Finalizers = finalizers
		}
		item, err := h.mark(ctx, c, key.Name, item, obj, in.dry)
		if err != nil {
			return nil, err
		}
		return &removal{item: item, obj: obj}, nil
	}
	if len(ns.Spec.Finalizers) > 0 {
		if in.dry {
			item = nil
		}
		return &removal{item: item, obj: obj}, nil
	}
	return nil, nil
}

// terminalPreconditions checks what the client wants to be sure of. Kinds that are
// marked before they go have words of their own for it.
func terminalPreconditions(st *kinds.Storage, obj kinds.Object, p *metav1.Preconditions) error {
	conflict := func(what string, want, have any) error {
		return apierrors.NewConflict(schema.ParseGroupResource(st.Key), obj.GetName(),
			fmt.Errorf("Precondition failed: %[1]s in precondition: %[2]v, %[1]s in object meta: %[3]v", what, want, have))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("UID", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("ResourceVersion", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

// Namespace tells admission about a namespace; see admission.Namespaces.
func (h *Handler) Namespace(ctx context.Context, name string) (exists, terminating bool, err error) {
	item, err := h.Objects.Find(ctx, permits.OfServer("the life of namespaces"), objects.Place{Resource: h.Catalogue.ByStorage(namespaces), Name: name})
	if err != nil || item == nil {
		return false, false, err
	}
	return true, item.Meta().Deleting, nil
}
