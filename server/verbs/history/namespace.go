package history

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/objects"
)

// within is the namespace in which a right to the object may have been given: for a Namespace
// that is itself.
func (o *object) within() string {
	if r := o.place.Resource; r.Group == "" && r.Plural == "namespaces" {
		return o.place.Name
	}
	return o.place.Namespace
}

// ofThisNamespace leaves out what no longer held when the namespace of the object was made: a
// namespace that was deleted and made again may be somebody else's, and rights in it are rights
// of now. Who may get such objects in all namespaces sees it, and is asked about once, where
// there is something to see.
func (o *object) ofThisNamespace(writes []objects.Write) ([]objects.Write, error) {
	made := o.h.Objects.NamespaceMade(o.within())
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

// askEverywhere settles, once, whether what was in an earlier namespace is shown.
func (o *object) askEverywhere() error {
	if o.asked {
		return nil
	}
	everywhere, err := o.h.Everywhere(o.c, o.place.Resource, "get", o.place.Name)
	if err == nil {
		o.asked, o.closed = true, !everywhere
	}
	return err
}

// before says whether a revision, 0 where nothing was, lies before the namespace was made, for who
// sees nothing of that: whether there was such an object then must not show either, so the answer
// is the same for all names.
func (o *object) before(revision int64) (bool, error) {
	if revision == 0 || revision >= o.h.Objects.NamespaceMade(o.within()) {
		return false, nil
	}
	err := o.askEverywhere()
	return o.closed, err
}

// earlier is the refusal of what was in an earlier namespace.
func (o *object) earlier() error {
	return apierrors.NewResourceExpired(fmt.Sprintf("what was before namespace %s was made is the past of another namespace, and shown to who may get %s in all namespaces",
		o.within(), o.place.Resource.GroupResource()))
}
