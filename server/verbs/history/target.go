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

// Annotations of audit events: the object whose past the client requested, and the authorizers' decision on a
// get of it. They hold nothing of the object.
const (
	annotateObject   = "history.rowlock.dev/object"
	annotateDecision = "history.rowlock.dev/decision"
)

// object is an object whose past the client may read, and the request.
type object struct {
	*handlers
	h      *verbs.Handler
	c      *verbs.Call
	place  objects.Place // in the version of the answer
	permit permits.Permit
	merge  history.Schema
	merged bool // merge is set

	asked  bool // closed is set
	closed bool // states from an earlier namespace are invisible
}

// open finds the resource of an object in the namespace of the request, and authorizes a get of the object.
// It does not look the object up. If no definition describes the resource, it reads newer definitions from
// the database only for users that may get the undescribed object; such users must also be allowed to get the
// described one.
func (t *handlers) open(h *verbs.Handler, c *verbs.Call, of schema.GroupResource, name string) (*object, error) {
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

// opened returns an object of a resource, if the user may get it.
func (t *handlers) opened(h *verbs.Handler, c *verbs.Call, r *kinds.Resource, name string) (*object, error) {
	if r.Namespaced != c.Resource.Namespaced {
		other, scope := "revisions", "in namespaces"
		if c.Resource.Namespaced {
			other, scope = "clusterrevisions", "in no namespace"
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s are %s: their past is in %s", r.GroupResource(), scope, other))
	}
	o := &object{handlers: t, h: h, c: c, place: objects.Place{Resource: r, Name: name}}
	if r.Namespaced {
		o.place.Namespace = c.Info.Namespace
	}
	var err error
	if o.permit, err = t.ask(c.R.Context(), c, &o.place); err != nil {
		return nil, err
	}
	return o, nil
}

// ask checks that the user may get an object.
func (t *handlers) ask(ctx context.Context, c *verbs.Call, at *objects.Place) (permits.Permit, error) {
	r := at.Resource
	object := r.GroupResource().String() + " " + at.Name
	if at.Namespace != "" {
		object = r.GroupResource().String() + " " + at.Namespace + "/" + at.Name
	}
	c.Scope.Annotate(annotateObject, object)
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

// find returns the resource in whose preferred version the past of objects is returned, in the group that
// stores them; nil if no known definition describes it.
func find(h *verbs.Handler, of schema.GroupResource) (*kinds.Resource, error) {
	if r := lookUp(h, of); r != nil {
		return stored(r, of)
	}
	if h.Catalogue.Own(of.Group, of.Resource) || of.Group == "" || h.Catalogue.BuiltIn(of.Group) {
		return nil, unserved(of)
	}
	return nil, nil
}

// undescribed returns a resource of which only the name is known.
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

// lookUp finds a served resource in its preferred version. If it is another name for objects stored as
// another kind, it is that kind.
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

// preferred returns the first served version of a resource.
func preferred(h *verbs.Handler, of schema.GroupResource) *kinds.Resource {
	for _, version := range h.Catalogue.Versions(of.Group) {
		if r := h.Catalogue.Lookup(of.Group, version, of.Resource); r != nil && !r.Off {
			return r
		}
	}
	return nil
}
