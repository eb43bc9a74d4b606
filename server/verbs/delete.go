package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

func (h *Handler) delete(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	options, err := h.deleteOptions(c)
	if err != nil {
		return err
	}
	unread, err := h.mayDeleteUnread(c, options)
	if err != nil {
		return err
	}
	if f := c.Resource.Storage.Undeletable; f != nil {
		if why := f(c.Info.Name); why != "" {
			return apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, errors.New(why))
		}
	}
	out, err := h.remove(c, c.Info.Name, options, false, unread)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !out.gone && options.OrphanDependents != nil && !*options.OrphanDependents {
		code = http.StatusAccepted
	}
	if out.gone && (out.obj == nil || !c.Resource.Storage.ReturnDeletedObject) {
		return h.Answers.Object(&c.Request, form, code, out.status(c))
	}
	return h.answer(c, form, code, out.item, out.obj)
}

// deleteOptions reads the options from the body, or without one from the query. A
// dry run that the query asks for is one with any body.
func (h *Handler) deleteOptions(c *Call) (*metav1.DeleteOptions, error) {
	body, err := h.Body(c)
	if err != nil {
		return nil, err
	}
	var o *metav1.DeleteOptions
	if len(body) > 0 {
		if o, err = h.decodeDeleteOptions(c, body); err == nil && len(o.DryRun) == 0 {
			o.DryRun = dryRun(c.Info.Query)
		}
	} else {
		o, err = deleteQuery(c.Info.Query)
	}
	if err != nil {
		return nil, err
	}
	if !h.Enabled(unsafeDelete) {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	if len(body) > 0 && c.Scope.Audit != nil {
		c.Scope.Audit.RequestObject(o)
	}
	return o, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(o))
}

func (h *Handler) decodeDeleteOptions(c *Call, body []byte) (*metav1.DeleteOptions, error) {
	mediaType, err := codecs.BodyType(c.R.Header.Get("Content-Type"), h.Answers.Forms.Types())
	if err != nil {
		return nil, err
	}
	from, o := h.Answers.Forms.Codec(mediaType), &metav1.DeleteOptions{}
	if err := h.weigh(c, from, body, o); err != nil {
		return nil, err
	}
	gvk, err := from.Kind(body)
	if err != nil {
		return nil, status.Plain(err.Error())
	}
	if err := noOptions(gvk); err != nil {
		return nil, status.Plain(err.Error())
	}
	if _, err := from.Decode(body, o, codecs.Ignore); err != nil {
		return nil, status.Plain(err.Error())
	}
	return o, nil
}

// noOptions refuses a body of another kind. Clients may send the options of any group
// they know.
func noOptions(gvk schema.GroupVersionKind) error {
	switch gvk.Kind {
	case "", "DeleteOptions":
		return nil
	case "CreateOptions", "UpdateOptions", "Status": // known in every version
		return fmt.Errorf("converting (v1.%s) to (v1.DeleteOptions): unknown conversion", gvk.Kind)
	}
	if gvk.GroupVersion().Empty() {
		gvk.Group, gvk.Version = metav1.GroupName, "v1"
	}
	return fmt.Errorf("no kind %q is registered for version %q in scheme %q",
		gvk.Kind, gvk.GroupVersion(), "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27")
}

const (
	unsafeDelete     = "AllowUnsafeMalformedObjectDeletion"
	unsafeOption     = "ignoreStoreReadErrorWithClusterBreakingPotential"
	unsafeDeleteVerb = "unsafe-delete-ignore-read-errors"
)

func ignoresReadErrors(o *metav1.DeleteOptions) bool {
	v := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return v != nil && *v
}

// mayDeleteUnread asks whether the user may delete what cannot be read. Without such
// a wish there is no permit for it.
func (h *Handler) mayDeleteUnread(c *Call, o *metav1.DeleteOptions) (permits.Permit, error) {
	if !ignoresReadErrors(o) {
		return permits.Permit{}, nil
	}
	c.Scope.Annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
	if h.Authorizer == nil {
		return permits.Permit{}, apierrors.NewInternalError(errors.New("no authorizer provided, unable to authorize unsafe delete"))
	}
	permit, reason, err := permits.Ask(c.Context(), h.Authorizer, &authx.Attributes{
		User: c.User, Verb: unsafeDeleteVerb, Namespace: c.Info.Namespace, APIGroup: c.Info.Group, APIVersion: c.Info.Version,
		Resource: c.Info.Resource, Name: c.Info.Name, ResourceRequest: true,
	})
	if permit.Valid() {
		return permit, nil
	}
	why := fmt.Errorf("not permitted to do %q, reason: %s", unsafeDeleteVerb, reason)
	if err != nil {
		why = fmt.Errorf("error while checking permission for %q, %w", unsafeDeleteVerb, err)
	}
	return permits.Permit{}, apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, why)
}

// removal is what became of a delete.
type removal struct {
	item *cache.Item  // the last state; nil for a dry run
	obj  kinds.Object // the last state decoded; nil if it could not be
	gone bool         // false: it waits for a grace period or finalizers
}

// status is the answer for kinds that do not return what was deleted.
func (o *removal) status(c *Call) *metav1.Status {
	st := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	if o.obj == nil {
		st.Code = http.StatusOK
		st.Details = &metav1.StatusDetails{Name: c.Info.Name, Kind: c.Resource.Kind}
		return st
	}
	st.Details = &metav1.StatusDetails{
		Name: o.obj.GetName(), Group: c.Resource.Group, Kind: c.Resource.Plural, UID: o.obj.GetUID(),
	}
	return st
}

// remove deletes an object of the request's resource, or marks it for deletion. With
// a permit for unread objects it deletes such a one, and no other. What is quiet
// admission does not see.
func (h *Handler) remove(c *Call, name string, options *metav1.DeleteOptions, quiet bool, unread permits.Permit) (*removal, error) {
	if err := objects.CheckName(name); err != nil {
		return nil, err
	}
	ctx, key := c.Context(), c.key(name)
	w := h.turns.Writer(key, c.User.Name)
	defer w.Done()
	pinned := options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
	for {
		if len(options.DryRun) == 0 {
			if err := w.Try(ctx, pinned); err != nil {
				return nil, err
			}
		}
		item, err := h.Objects.Find(ctx, c.Permit(), c.place(name))
		if err != nil {
			return nil, err
		}
		if item == nil {
			return nil, apierrors.NewNotFound(c.Resource.GroupResource(), name)
		}
		var out *removal
		if unread.Valid() {
			out, err = h.removeCorrupt(ctx, c, unread, item)
		} else {
			out, err = h.tryRemove(ctx, c, key, item, options.DeepCopy(), quiet)
		}
		if err == nil {
			return out, nil
		}
		if err := h.Objects.Overtaken(ctx, err); err != nil {
			return nil, err
		}
		w.Lost()
	}
}

func (h *Handler) tryRemove(ctx context.Context, c *Call, key sqlstore.Key, item *cache.Item, o *metav1.DeleteOptions, quiet bool) (*removal, error) {
	st := c.Resource.Storage
	obj, err := h.Objects.Decode(ctx, c.Resource, item)
	if err != nil {
		return nil, err
	}
	// Those of an eviction come here as they were sent.
	if err := invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(o)); err != nil {
		return nil, err
	}
	if err := deletePreconditions(st, obj, o); err != nil {
		return nil, err
	}
	in := intent{options: o, dry: len(o.DryRun) > 0}
	if !quiet {
		a := h.attributes(c, admission.Delete, nil, obj, in) // without a name where a whole collection goes
		if err := h.Admission.Admit(ctx, a); err != nil {
			return nil, err
		}
		if err := h.Admission.Validate(ctx, a); err != nil {
			return nil, err
		}
	}
	if st.OrphanByDefault && st.OrphanWarning != "" && o.PropagationPolicy == nil && o.OrphanDependents == nil {
		c.Scope.Warn(st.OrphanWarning)
	}
	if st.Key == namespaces {
		if out, err := h.terminateNamespace(ctx, c, key, item, obj, o, in); out != nil || err != nil {
			return out, err
		}
	}
	if st.Terminate != nil && obj.GetDeletionTimestamp() == nil {
		st.Terminate(obj, h.now().UTC().Truncate(time.Second))
		item, err := h.mark(ctx, c, key.Name, item, obj, in.dry)
		if err != nil {
			return nil, err
		}
		return &removal{item: item, obj: obj}, nil
	}
	d := h.plannedDelete(ctx, st, obj, o)
	if d.pending {
		// A longer or no grace period changes nothing of a delete that is under way.
		if in.dry {
			return &removal{obj: obj, gone: !st.ReturnDeletedObject}, nil
		}
		return &removal{item: item, obj: obj, gone: !st.ReturnDeletedObject}, nil
	}
	if d.mark {
		if item, err = h.mark(ctx, c, key.Name, item, obj, in.dry); err != nil {
			return nil, err
		}
		if d.wait {
			return &removal{item: item, obj: obj}, nil
		}
	}
	if in.dry {
		return &removal{obj: obj, gone: true}, nil
	}
	return h.erase(ctx, c, key.Name, item, obj)
}

// deletePreconditions checks what the client wants to be sure of.
func deletePreconditions(st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) error {
	p := o.Preconditions
	if p == nil {
		return nil
	}
	if st.Key == namespaces || st.Terminate != nil {
		return terminalPreconditions(st, obj, p)
	}
	conflict := func(format string, args ...any) error {
		gr := schema.GroupResource{Group: st.GVK.Group, Resource: st.GVK.Kind}
		return apierrors.NewConflict(gr, obj.GetName(), fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

// mark stores the state in which an object waits for its end.
func (h *Handler) mark(ctx context.Context, c *Call, name string, item *cache.Item, obj kinds.Object, dry bool) (*cache.Item, error) {
	if dry {
		return nil, nil
	}
	rv := obj.GetResourceVersion()
	value, err := objects.Encode(ctx, c.Resource, obj)
	obj.SetResourceVersion(rv)
	if err != nil || objects.Unchanged(item, value) {
		return item, err
	}
	return h.Objects.Commit(ctx, c.Permit(), c.place(name), sqlstore.Op{
		Verb: sqlstore.Update, Expect: item.Revision, Value: value, ExpiresAt: objects.Expiry(c.Resource.Storage, obj, h.Objects.Now()),
	}, nil)
}

// erase deletes the row of an object and gives back its claims.
func (h *Handler) erase(ctx context.Context, c *Call, name string, item *cache.Item, obj kinds.Object) (*removal, error) {
	extra, err := h.Objects.Plan(ctx, c.Permit(), c.place(name), nil, obj, false)
	if err != nil {
		return nil, err
	}
	last, err := h.Objects.Commit(ctx, c.Permit(), c.place(name), sqlstore.Op{Verb: sqlstore.Delete, Expect: item.Revision, Value: item.JSON}, extra)
	if err != nil {
		return nil, err
	}
	return &removal{item: last, obj: obj, gone: true}, nil
}

// removeCorrupt deletes what cannot be read, whatever it may have waited for. With it
// goes what was claimed for it, which nobody else would ever give back.
func (h *Handler) removeCorrupt(ctx context.Context, c *Call, unread permits.Permit, item *cache.Item) (*removal, error) {
	if item.Corrupt == nil {
		kind := schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}
		return nil, status.Invalid(kind, item.Name, field.ErrorList{field.Invalid(field.NewPath(unsafeOption), true,
			"is exclusively used to delete corrupt object(s), try again by removing this option")})
	}
	if err := h.Objects.Discard(ctx, c.Permit(), unread, c.place(item.Name), item); err != nil {
		return nil, err
	}
	return &removal{gone: true}, nil
}

// noUnreadCollections refuses to delete unread objects by the dozen.
func noUnreadCollections(o *metav1.DeleteOptions) error {
	if !ignoresReadErrors(o) {
		return nil
	}
	return invalidOptions("DeleteOptions", field.ErrorList{
		field.Invalid(field.NewPath(unsafeOption), true, "is not allowed with DELETECOLLECTION, try again after removing the option"),
	})
}
