package history

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/objects"
)

// within returns the namespace in which rights to the object apply: for a Namespace, itself.
func (o *object) within() string {
	if r := o.place.Resource; r.Group == "" && r.Plural == "namespaces" {
		return o.place.Name
	}
	return o.place.Namespace
}

// ofThisNamespace drops the states from before the object's namespace was recreated: the earlier namespace may have
// belonged to another user, and rights in a namespace are rights in the current one. A user that may get such objects
// in all namespaces sees them; the authorizer decides that once, and only if there is such a state.
func (o *object) ofThisNamespace(writes []objects.Write) ([]objects.Write, error) {
	made := o.h.Objects.NamespaceCreated(o.within())
	for i := range writes {
		w := &writes[i]
		if held := !w.Deleted && (w.Superseded == 0 || w.Superseded > made); held || w.Item.Revision > made {
			continue
		}
		if err := o.askEverywhere(); err != nil {
			return nil, err
		}
		if o.closed {
			return writes[:i], nil
		}
		break
	}
	return writes, nil
}

// askEverywhere determines once whether states from an earlier namespace are visible.
func (o *object) askEverywhere() error {
	if o.asked {
		return nil
	}
	everywhere, err := o.h.AllNamespaces(o.c, o.place.Resource, "get", o.place.Name)
	if err == nil {
		o.asked, o.closed = true, !everywhere
	}
	return err
}

// before reports whether a revision, 0 for no state, precedes the namespace, for users that may not see such
// states. They must not learn whether such an object existed either, so the answer is the same for all names.
func (o *object) before(revision int64) (bool, error) {
	if revision == 0 || revision >= o.h.Objects.NamespaceCreated(o.within()) {
		return false, nil
	}
	err := o.askEverywhere()
	return o.closed, err
}

// earlier returns the error for states from an earlier namespace.
func (o *object) earlier() error {
	return apierrors.NewResourceExpired(fmt.Sprintf("history from before namespace %s was created belongs to another namespace; it takes the right to get %s in all namespaces",
		o.within(), o.place.Resource.GroupResource()))
}
