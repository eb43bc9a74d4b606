package history

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/objects"
)

// ofThisNamespace leaves out what no longer held when the namespace of the object was made: a
// namespace that was deleted and made again may be somebody else's, and rights in it are rights
// of now. Who may get such objects in all namespaces sees it, and is asked about once, where
// there is something to see.
func (o *object) ofThisNamespace(writes []objects.Write) ([]objects.Write, error) {
	made := o.h.Objects.NamespaceMade(o.place.Namespace)
	for i := range writes {
		w := &writes[i]
		if held := !w.Deleted && (w.Superseded == 0 || w.Superseded > made); held || w.Item.Revision > made {
			continue
		}
		if !o.asked {
			everywhere, err := o.h.Everywhere(o.c, o.place.Resource, "get", o.place.Name)
			if err != nil {
				return nil, err
			}
			o.asked, o.closed = true, !everywhere
		}
		if o.closed {
			return writes[:i], nil
		}
		break
	}
	return writes, nil
}

// earlier is the refusal of what was in an earlier namespace.
func (o *object) earlier() error {
	return apierrors.NewResourceExpired(fmt.Sprintf("what was before namespace %s was made anew is the past of another namespace, and shown to who may get %s in all namespaces",
		o.place.Namespace, o.place.Resource.GroupResource()))
}
