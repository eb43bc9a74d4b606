package verbs

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
)

// A namespace that was deleted and made again may be somebody else's. Rights in it are none to
// what was in the earlier one: for that it takes the right in all namespaces.

// Everywhere asks whether the user may do with objects of a resource in all namespaces, or with
// those of one name, what the request wants in one.
func (h *Handler) Everywhere(c *Call, r *kinds.Resource, verb, name string) (bool, error) {
	if h.Writes == nil || h.Writes.Authorizer == nil {
		return false, nil
	}
	p, _, err := permits.Ask(c.R.Context(), h.Writes.Authorizer, &authx.Attributes{
		User: c.User, Verb: verb, ResourceRequest: true, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural, Name: name,
	})
	if err != nil && !p.Valid() {
		return false, apierrors.NewInternalError(err)
	}
	return p.Valid(), nil
}

func (h *Handler) everywhere(c *Call) (bool, error) {
	permit := c.Permit()
	return h.Everywhere(c, c.Resource, c.Info.Verb, permit.Only())
}

// ofThisNamespace refuses a watch that begins in an earlier namespace of the same name, as one
// from a revision that is gone: events tell what was there.
func (h *Handler) ofThisNamespace(c *Call, o *objects.ListOptions) error {
	revision, err := o.Revision(false)
	if err != nil || revision == 0 || o.InitialEvents() || revision >= h.Objects.NamespaceMade(o.Namespace) {
		return nil // what is wrong with a revision is told where it is used
	}
	may, err := h.everywhere(c)
	if err == nil && !may {
		err = apierrors.NewResourceExpired(fmt.Sprintf("namespace %s was made anew since resource version %d", o.Namespace, revision))
	}
	return err
}
