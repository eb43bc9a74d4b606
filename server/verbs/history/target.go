package history

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/verbs"
)

// Keys of the annotations of audit events: the object whose past was asked for, and what the
// authorizers said to a get of it. Nothing of what it holds is recorded so.
const (
	annotateObject   = "history.rowlock.dev/object"
	annotateDecision = "history.rowlock.dev/decision"
)

// object is one object whose past may be seen, and the client.
type object struct {
	*teller
	h      *verbs.Handler
	c      *verbs.Call
	place  objects.Place // in the version that is shown
	permit permits.Permit
	merge  history.Schema
	merged bool // merge is known

	asked  bool // about objects in all namespaces
	closed bool // what was in an earlier namespace of the name is not shown
}

// open finds the resource of an object in the namespace of the request, and asks whether the
// user may get the object now. It looks for no object. The database is asked for a newer
// definition only for who may get what nothing describes, and who may then get what it describes.
func (t *teller) open(h *verbs.Handler, c *verbs.Call, of schema.GroupResource, name string) (*object, error) {
	r, err := find(h, of)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return t.opened(h, c, r, name)
	}
	o, err := t.opened(h, c, undescribed(c, of), name)
	if err != nil {
		return nil, err
	}
	if err := h.Objects.CatchUp(c.R.Context()); err != nil {
		return nil, err
	}
	if r, err = find(h, of); r == nil || err != nil {
		return o, err
	}
	return t.opened(h, c, r, name)
}

// opened is an object of a resource, if the user may get it.
func (t *teller) opened(h *verbs.Handler, c *verbs.Call, r *kinds.Resource, name string) (*object, error) {
	if r.Namespaced != c.Resource.Namespaced {
		other, scope := "revisions", "in namespaces"
		if c.Resource.Namespaced {
			other, scope = "clusterrevisions", "in no namespace"
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s are %s: their past is in %s", r.GroupResource(), scope, other))
	}
	o := &object{teller: t, h: h, c: c, place: objects.Place{Resource: r, Name: name}}
	if r.Namespaced {
		o.place.Namespace = c.Info.Namespace
	}
	var err error
	if o.permit, err = t.ask(c.R.Context(), c, &o.place); err != nil {
		return nil, err
	}
	return o, nil
}

// ask asks whether the user may get an object, as a request for that would.
func (t *teller) ask(ctx context.Context, c *verbs.Call, at *objects.Place) (permits.Permit, error) {
	r := at.Resource
	said := r.GroupResource().String() + " " + at.Name
	if at.Namespace != "" {
		said = r.GroupResource().String() + " " + at.Namespace + "/" + at.Name
	}
	c.Scope.Annotate(annotateObject, said)
	get := &authx.Attributes{
		User: c.User, Verb: "get", ResourceRequest: true,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural, Namespace: r.NamespaceOf(at.Namespace, at.Name), Name: at.Name,
	}
	if c.Scope.Audit != nil {
		c.Scope.Audit.Shows(get)
	}
	p, err := permits.Need(ctx, t.Authorizer, get)
	decision := "allow"
	if err != nil {
		decision = "forbid"
	}
	c.Scope.Annotate(annotateDecision, decision)
	return p, err
}

// find finds the resource in whose preferred version the past of objects is shown, in the group
// in which they are stored; nil for what no definition describes that is known here.
func find(h *verbs.Handler, of schema.GroupResource) (*kinds.Resource, error) {
	if r := lookUp(h, of); r != nil {
		return stored(r, of)
	}
	if h.Catalogue.Own(of.Group, of.Resource) || of.Group == "" || h.Catalogue.BuiltIn(of.Group) {
		return nil, unserved(of)
	}
	return nil, nil
}

// undescribed is a resource of which nothing but its name is known, and where it is asked for.
func undescribed(c *verbs.Call, of schema.GroupResource) *kinds.Resource {
	return &kinds.Resource{
		Group: of.Group, Plural: of.Resource, Namespaced: c.Resource.Namespaced, Schema: kinds.AsStored{},
		Storage: &kinds.Storage{Key: of.String()}, New: func() kinds.Object { return &unstructured.Unstructured{} },
	}
}

func stored(r *kinds.Resource, of schema.GroupResource) (*kinds.Resource, error) {
	if r.Storage == nil {
		return nil, unserved(of)
	}
	return r, nil
}

func unserved(of schema.GroupResource) error {
	return apierrors.NewBadRequest(fmt.Sprintf("this server neither stores nor serves a resource %q", of))
}

// lookUp finds a resource that is served, in its preferred version; one that is another name for
// an object that is stored as a third kind, under the name of that.
func lookUp(h *verbs.Handler, of schema.GroupResource) *kinds.Resource {
	if h.Follow != nil {
		h.Follow()
	}
	r := preferred(h, of)
	if r == nil || r.Storage == nil {
		return r
	}
	if home := h.Catalogue.ByStorage(r.Storage.Key); home != nil && home.GroupResource() != of {
		if other := preferred(h, home.GroupResource()); other != nil {
			return other
		}
	}
	return r
}

// preferred is the first version of a resource that is served.
func preferred(h *verbs.Handler, of schema.GroupResource) *kinds.Resource {
	for _, version := range h.Catalogue.Versions(of.Group) {
		if r := h.Catalogue.Lookup(of.Group, version, of.Resource); r != nil && !r.Off {
			return r
		}
	}
	return nil
}
