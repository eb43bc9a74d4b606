package verbs

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// What follows is for a Special that writes objects: a binding, an eviction.

// MatchNamespace checks that an object sent with c is of the namespace of its
// path, and fills the namespace in.
func MatchNamespace(c *Call, obj metav1.Object) error { return matchNamespace(c, obj) }

// AdmitPart asks admission about the body of a subresource or of a virtual
// resource (op is Create), or about the options of a connection (Connect).
func (h *Handler) AdmitPart(c *Call, op admission.Operation, obj, options runtime.Object, dry bool) error {
	a := h.attributes(c, op, obj, nil, intent{options: options, dry: dry})
	if m := a.Meta(); a.Name == "" && m != nil {
		a.Name = m.GetName()
	}
	if err := h.Admission.Admit(c.Context(), a); err != nil {
		return err
	}
	return h.Admission.Validate(c.Context(), a)
}

// Rewrite changes a stored object as fn says, as often as another write is
// faster. Nothing is defaulted or validated, nobody owns what changes, and
// admission is not asked. It answers 404 where there is no object. The object it
// returns has been stored, unless dry, and has its version.
func (h *Handler) Rewrite(c *Call, at objects.Place, dry bool, fn func(obj kinds.Object) error) (kinds.Object, error) {
	if err := objects.CheckName(at.Name); err != nil {
		return nil, err
	}
	ctx, p := c.Context(), c.Permit()
	w := h.turns.Writer(at.Key(), c.User.Name)
	defer w.Done()
	for {
		if !dry {
			if err := w.Try(ctx, false); err != nil {
				return nil, err
			}
		}
		item, err := h.Objects.Find(ctx, p, at)
		if err != nil {
			return nil, err
		}
		if item == nil {
			return nil, apierrors.NewNotFound(at.Resource.GroupResource(), at.Name)
		}
		obj, err := h.Objects.Decode(ctx, at.Resource, item)
		if err != nil {
			return nil, err
		}
		if err := fn(obj); err != nil || dry {
			return obj, err
		}
		if err = h.rewrite(ctx, p, at, item, obj); err == nil {
			return obj, nil
		}
		if err := h.Objects.Overtaken(ctx, err); err != nil {
			return nil, err
		}
		w.Lost()
	}
}

func (h *Handler) rewrite(ctx context.Context, p permits.Permit, at objects.Place, item *cache.Item, obj kinds.Object) error {
	value, err := objects.Encode(ctx, at.Resource, obj)
	if err != nil {
		return err
	}
	if err := objects.CheckSize(value); err != nil {
		return err
	}
	if objects.Unchanged(item, value) {
		obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
		return nil
	}
	next, err := h.Objects.Commit(ctx, p, at, sqlstore.Op{
		Verb: sqlstore.Update, Expect: item.Revision, Value: value, ExpiresAt: objects.Expiry(at.Resource.Storage, obj, h.Objects.Now()),
	}, nil)
	if err == nil {
		obj.SetResourceVersion(strconv.FormatInt(next.Revision, 10))
	}
	return err
}

// Within makes the call for another object while c is answered, such as the budget
// that an eviction draws on. It has the permit of c, which must cover what is done
// then. sub is "" for the object itself.
func (c *Call) Within(r *kinds.Resource, sub, namespace, name string) *Call {
	info := *c.Info
	info.Group, info.Version, info.Resource = r.Group, r.Version, r.Plural
	info.Subresource, info.Namespace, info.Name = sub, namespace, name
	scope := &request.Scope{Info: &info, User: c.User, Permit: c.Scope.Permit}
	return &Call{Request: answers.Request{W: c.W, R: c.R, Scope: scope, Resource: r, Sub: r.Sub(sub)}, Info: &info, User: c.User}
}

// Change updates the object of a call as a PUT by manager would, with validation
// and field ownership, as often as another write is faster. Admission is not asked.
func (h *Handler) Change(c *Call, manager string, dry bool, fn func(obj kinds.Object) error) error {
	ch := &change{intent: intent{manager: manager, options: &metav1.UpdateOptions{FieldManager: manager}, dry: dry}, quiet: true}
	ch.compute = func(old kinds.Object, _ *cache.Item) (kinds.Object, error) {
		obj := objects.Copy(old)
		return obj, fn(obj)
	}
	_, err := h.change(c, ch)
	return err
}

// Remove deletes the object of a call as DELETE with these options would, but never
// one that cannot be read. Admission is not asked.
func (h *Handler) Remove(c *Call, options *metav1.DeleteOptions) error {
	_, err := h.remove(c, c.Info.Name, options, true, permits.Permit{})
	return err
}

// Own records the sender of a body that is never stored, of a kind that r describes,
// as the owner of all that stands in it. asked is the manager that the client named.
func (h *Handler) Own(c *Call, r *kinds.Resource, sub string, obj kinds.Object, asked string) error {
	if h.Owner == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return h.Owner.AfterCreate(r, sub, obj, managerOf(c, asked), h.now())
}

// Now is the time by the handler's clock.
func (h *Handler) Now() time.Time { return h.now() }
