package writes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Deletion describes how to delete an object.
type Deletion struct {
	Name    string
	Options *metav1.DeleteOptions // include whether it is a dry run
	// Unread permits to delete an object that cannot be read, and no other.
	Unread permits.Permit
	// Unadmitted deletes bypass admission.
	Unadmitted bool
	// Marked, if set, takes an object that is marked already, which the caller must confirm later with
	// Writer.Unconfirmed; nil: it is confirmed at once.
	Marked *AlreadyDeleting
}

// AlreadyDeleting are objects to which a delete changed nothing.
type AlreadyDeleting struct{ items []*cache.Item }

// confirm returns an error unless an object to which the delete changes nothing is the live one among the
// writes of all servers.
func (w *Writer) confirm(ctx context.Context, req *Request, d *Deletion, item *cache.Item) error {
	if d.Marked != nil {
		d.Marked.items = append(d.Marked.items, item)
		return nil
	}
	return w.Objects.Current(ctx, req.Permit, req.place(item.Name), item)
}

// Unconfirmed waits for all writes of all servers so far, once, and returns those of the marked objects that have
// changed since they were read, as they are now: the delete must be repeated for them.
func (w *Writer) Unconfirmed(ctx context.Context, req *Request, m *AlreadyDeleting) (changed []*cache.Item, err error) {
	if len(m.items) == 0 {
		return nil, nil
	}
	if err := w.Objects.CatchUp(ctx); err != nil {
		return nil, err
	}
	for _, item := range m.items {
		live, err := w.Objects.Get(req.Permit, req.place(item.Name))
		switch {
		case err != nil:
			return nil, err
		case live != nil && live.Revision != item.Revision:
			changed = append(changed, live)
		}
	}
	return changed, nil
}

// UnreadOption is the option to delete an unreadable object.
const UnreadOption = "ignoreStoreReadErrorWithClusterBreakingPotential"

const unreadVerb = "unsafe-delete-ignore-read-errors"

// AuthorizeUnread authorizes the user of a request to delete its object although it cannot be read.
func (w *Writer) AuthorizeUnread(ctx context.Context, req *Request) (permits.Permit, error) {
	if w.Authorizer == nil {
		return permits.Permit{}, apierrors.NewInternalError(errors.New("no authorizer provided, unable to authorize unsafe delete"))
	}
	permit, reason, err := permits.Authorize(ctx, w.Authorizer, &authx.Attributes{
		User: req.User, Verb: unreadVerb, Namespace: req.Namespace, APIGroup: req.Resource.Group, APIVersion: req.Resource.Version,
		Resource: req.Resource.Plural, Name: req.Name, ResourceRequest: true,
	})
	if permit.Valid() {
		return permit, nil
	}
	why := fmt.Errorf("not permitted to do %q, reason: %s", unreadVerb, reason)
	if err != nil {
		why = fmt.Errorf("error while checking permission for %q, %w", unreadVerb, err)
	}
	return permits.Permit{}, apierrors.NewForbidden(req.Resource.GroupResource(), req.Name, why)
}

// WarnOrphans warns the client if its options do not decide about dependents and these are orphaned, whether
// or not there is anything to delete.
func WarnOrphans(req *Request, options *metav1.DeleteOptions) {
	st := req.Resource.Storage
	if st.OrphanByDefault && st.OrphanWarning != "" && options.PropagationPolicy == nil && options.OrphanDependents == nil {
		req.Warn(st.OrphanWarning)
	}
}

// Delete deletes an object of the request's resource, or marks it for deletion.
func (w *Writer) Delete(ctx context.Context, req *Request, d *Deletion) (*Outcome, error) {
	if err := objects.CheckName(d.Name); err != nil {
		return nil, err
	}
	WarnOrphans(req, d.Options)
	ctx = kinds.WithRequested(ctx, req.Resource)
	all := attempts{
		key: req.key(d.Name), user: req.User.Name, dry: len(d.Options.DryRun) > 0,
		pinned: d.Options.Preconditions != nil && d.Options.Preconditions.ResourceVersion != nil,
	}
	var out *Outcome
	var recent recency
	err := all.run(ctx, w, func() (err error) {
		out, err = w.tryDelete(ctx, req, d, &recent)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// tryDelete deletes the present object.
func (w *Writer) tryDelete(ctx context.Context, req *Request, d *Deletion, recent *recency) (*Outcome, error) {
	item, err := w.Objects.Find(ctx, req.Permit, req.place(d.Name))
	if err != nil {
		return nil, err
	}
	if item == nil {
		return nil, apierrors.NewNotFound(req.Resource.GroupResource(), d.Name)
	}
	out, err := w.remove(ctx, req, d, item)
	if refused(err) || err == nil && len(d.Options.DryRun) > 0 {
		if err := recent.check(ctx, w, req.Permit, req.place(d.Name), item); err != nil {
			return nil, err
		}
	}
	return out, err
}

// remove deletes an object as it was found, or marks it.
func (w *Writer) remove(ctx context.Context, req *Request, d *Deletion, item *cache.Item) (*Outcome, error) {
	if d.Unread.Valid() {
		return w.discard(ctx, req, d, item)
	}
	obj, err := w.Objects.Decode(ctx, req.Resource, item)
	if err != nil {
		return nil, err
	}
	options := d.Options.DeepCopy() // plans change them
	if err := w.admitDelete(ctx, req, d, options, obj); err != nil {
		return nil, err
	}
	st := req.Resource.Storage
	plan := w.planDelete(ctx, st, obj, options)
	dry := len(options.DryRun) > 0
	if plan.mark {
		if item, err = w.mark(ctx, req, d, item, obj, dry); err != nil {
			return nil, err
		}
	}
	if plan.wait && !plan.mark && !dry { // it is marked already
		if err := w.confirm(ctx, req, d, item); err != nil {
			return nil, err
		}
	}
	switch {
	case plan.wait:
		return &Outcome{Item: item, Object: obj, Gone: plan.saysGone}, nil
	case dry:
		return &Outcome{Item: item, Object: obj, Gone: true}, nil
	}
	if plan.mark && w.Apart > 0 {
		shown := time.NewTimer(w.Apart)
		select {
		case <-shown.C:
		case <-ctx.Done():
		}
		shown.Stop()
	}
	return w.erase(ctx, req, item, obj)
}

// admitDelete checks preconditions, and runs admission.
func (w *Writer) admitDelete(ctx context.Context, req *Request, d *Deletion, options *metav1.DeleteOptions, obj kinds.Object) error {
	// The options of an eviction have not been validated.
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return status.Invalid(req.Resource.Release, schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	if err := checkPreconditions(req.Resource.Storage, obj, options.Preconditions); err != nil {
		return &staleError{asked: newest(options.Preconditions, obj), err: err}
	}
	if d.Unadmitted {
		return nil
	}
	a := req.attributes(admission.Delete, nil, obj) // without a name in the deletion of a collection
	a.Options, a.DryRun = options, len(options.DryRun) > 0
	if err := w.Admission.Admit(ctx, a); err != nil {
		return err
	}
	return w.Admission.Validate(ctx, a)
}

// newest returns the revision up to which the cache must be complete before a precondition counts as failed. A
// version may be newer than the object here, and may belong to another UID.
func newest(p *metav1.Preconditions, obj kinds.Object) int64 {
	if p.UID != nil && *p.UID != obj.GetUID() {
		return math.MaxInt64
	}
	if n, err := strconv.ParseInt(*p.ResourceVersion, 10, 64); err == nil {
		return n
	}
	return 0 // not a version
}

// checkPreconditions checks the client's preconditions. Kinds with graceful deletion have their own error
// text.
func checkPreconditions(st *kinds.Storage, obj kinds.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if st.Terminate != nil {
		return checkTerminal(st, obj, p)
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

func checkTerminal(st *kinds.Storage, obj kinds.Object, p *metav1.Preconditions) error {
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

// mark stores the object with its deletion marks. A dry run stores nothing.
func (w *Writer) mark(ctx context.Context, req *Request, d *Deletion, item *cache.Item, obj kinds.Object, dry bool) (*cache.Item, error) {
	rv := obj.GetResourceVersion()
	value, err := w.Objects.Encode(ctx, req.Resource, obj, item.Size())
	obj.SetResourceVersion(rv)
	if err != nil {
		return nil, err
	}
	if dry {
		return w.Objects.Unstored(req.place(item.Name), item.Revision, rv, value), nil
	}
	next, err := w.Objects.Replace(ctx, req.Permit, req.place(item.Name), item, obj, value, nil)
	if err == nil && next == item {
		err = w.confirm(ctx, req, d, item)
	}
	return next, err
}

// erase deletes the row of an object and releases its claims.
func (w *Writer) erase(ctx context.Context, req *Request, item *cache.Item, obj kinds.Object) (*Outcome, error) {
	at := req.place(item.Name)
	extra, err := w.Objects.Plan(ctx, req.Permit, at, nil, obj, false)
	if err != nil {
		return nil, err
	}
	last, err := w.Objects.Commit(ctx, req.Permit, at, sqlstore.Op{Verb: sqlstore.Delete, Expect: item.Revision, Value: item.JSON()}, extra)
	if err != nil {
		return nil, err
	}
	return &Outcome{Item: last, Object: obj, Gone: true}, nil
}

// discard deletes an unreadable object despite finalizers, together with its claims, which nothing else would
// release.
func (w *Writer) discard(ctx context.Context, req *Request, d *Deletion, item *cache.Item) (*Outcome, error) {
	if item.Err() == nil {
		kind := schema.GroupKind{Group: req.Resource.Group, Kind: req.Resource.Plural}
		return nil, status.Invalid(req.Resource.Release, kind, item.Name, field.ErrorList{field.Invalid(field.NewPath(UnreadOption), true,
			"is exclusively used to delete corrupt object(s), try again by removing this option")})
	}
	if errors.Is(item.Err(), sqlstore.ErrKeyUnavailable) { // the value itself may be intact
		return nil, objects.Corrupt(req.Resource, item)
	}
	if err := w.Objects.Discard(ctx, req.Permit, d.Unread, req.place(item.Name), item); err != nil {
		return nil, err
	}
	return &Outcome{Gone: true}, nil
}

// deletionTime returns the time for marks of deletion.
func (w *Writer) deletionTime() metav1.Time {
	return metav1.Time{Time: w.Clock().UTC().Truncate(time.Second)}
}
