package writes

import (
	"bytes"
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Change computes the new state of an object. It is for one call of Update.
type Change struct {
	UID types.UID // the object must be this one, if set
	// Pinned reports that the client names the resource version it replaces, as far as that is known
	// beforehand.
	Pinned bool
	// MayCreate allows creating a missing object, which needs a permit of its own.
	MayCreate bool
	// Compute returns the new object of an attempt, in the stored version and with defaults; the writer may change it. old
	// is nil if there is none, and must not be changed. It is called again after a conflict with another
	// write.
	Compute func(old kinds.Object, item *cache.Item) (kinds.Object, error)

	// first is the new object of the first attempt of a replacement, and again returns that of each later one, as the client
	// sent it. Both nil: the new object depends on the old one.
	first kinds.Object
	again func() (kinds.Object, error)
	// own records field owners; nil: the manager owns all changes.
	own func(obj, old kinds.Object) error
	// unadmitted writes bypass admission.
	unadmitted bool
	creates    permits.Permit // to create the object; zero until authorized
	recency    recency
}

// next returns the new object of an attempt.
func (ch *Change) next(req *Request, old kinds.Object, item *cache.Item) (kinds.Object, error) {
	if obj := ch.first; obj != nil {
		ch.first = nil
		return obj, nil
	}
	if ch.again == nil {
		return ch.Compute(old, item)
	}
	obj, err := ch.again()
	if err != nil {
		return nil, err
	}
	return accept(req, obj)
}

// accept compares an object that a client sent with the path, drops repeated owners, and completes the object as Incoming.
func accept(req *Request, obj kinds.Object) (kinds.Object, error) {
	if err := matchPath(req, obj); err != nil {
		return nil, err
	}
	warnOwners(req, obj)
	return Incoming(req.Resource, obj)
}

// Replace stores an object that the client sent, in the version of the request, in place of the live one, or as a new one if the
// kind allows that. An attempt changes the object, so again returns it anew after a conflict with another write.
func (w *Writer) Replace(ctx context.Context, req *Request, obj kinds.Object, again func() (kinds.Object, error)) (*Outcome, error) {
	obj, err := accept(req, obj)
	if err != nil {
		return nil, err
	}
	return w.Update(ctx, req, &Change{
		UID: obj.GetUID(), Pinned: obj.GetResourceVersion() != "", MayCreate: req.Sub == nil && req.Resource.Storage.CreateOnUpdate,
		first: obj, again: again,
	})
}

// Update repeats a change until it is stored, refused, or conflicts with the resource version of the client,
// or until ctx ends.
func (w *Writer) Update(ctx context.Context, req *Request, ch *Change) (*Outcome, error) {
	ctx = kinds.WithRequested(ctx, req.Resource)
	all := attempts{key: req.key(req.Name), user: req.User.Name, dry: req.DryRun, pinned: ch.Pinned}
	var out *Outcome
	err := all.run(ctx, w, func() (err error) {
		out, err = w.tryUpdate(ctx, req, ch)
		return err
	})
	if err != nil {
		return nil, err
	}
	if notify := w.Changed[req.Resource.Storage.Key]; notify != nil && !req.DryRun && out.Item != nil {
		notify(ctx, out.Item)
	}
	return out, nil
}

// tryUpdate attempts the change once, on the present object.
func (w *Writer) tryUpdate(ctx context.Context, req *Request, ch *Change) (out *Outcome, err error) {
	old, item, err := w.Objects.Live(ctx, req.Permit, req.place(req.Name))
	switch {
	case item == nil && apierrors.IsNotFound(err):
		return w.createByUpdate(ctx, req, ch)
	case item == nil:
		return nil, err
	case err == nil:
		out, err = w.change(ctx, req, ch, item, old)
	}
	if refused(err) || err == nil && req.DryRun {
		if err := ch.recency.check(ctx, w, req.Permit, req.place(req.Name), item); err != nil {
			return nil, err
		}
	}
	return out, err
}

// change attempts the change once, on an item and its object.
func (w *Writer) change(ctx context.Context, req *Request, ch *Change, item *cache.Item, old kinds.Object) (*Outcome, error) {
	if err := uidError(req, ch.UID, old.GetUID()); err != nil {
		return nil, PreconditionFailed(err)
	}
	obj, err := ch.next(req, old, item)
	if err != nil {
		return nil, err
	}
	if ch.own != nil {
		err = ch.own(obj, old)
	} else {
		err = w.recordOwner(req, obj, old)
	}
	if err != nil {
		return nil, err
	}
	if !ch.unadmitted {
		if err := w.Admission.Admit(ctx, req.attributes(admission.Update, obj, old)); err != nil {
			return nil, err
		}
		warnAdmittedOwners(req, obj)
	}
	if err := matchRevision(req, obj, item); err != nil {
		return nil, err
	}
	var extra []sqlstore.Op
	if req.Sub == nil {
		if extra, err = w.Objects.Plan(ctx, req.Permit, req.place(req.Name), obj, old, req.DryRun); err != nil {
			return nil, err
		}
	}
	if err := w.prepareUpdate(ctx, req, obj, old); err != nil {
		return nil, err
	}
	if !ch.unadmitted {
		if err := w.Admission.Validate(ctx, req.attributes(admission.Update, obj, old)); err != nil {
			return nil, err
		}
	}
	return w.replace(ctx, req, ch, item, obj, old, extra)
}

// prepareUpdate resets the fields that a client may not change, and validates.
func (w *Writer) prepareUpdate(ctx context.Context, req *Request, obj, old kinds.Object) error {
	if err := MatchNamespace(req, obj); err != nil {
		return err
	}
	s := req.strategy()
	obj.SetGeneration(old.GetGeneration())
	if s.PrepareForUpdate != nil {
		s.PrepareForUpdate(ctx, obj, old)
	}
	keepMeta(obj, old)
	if err := spendStage(ctx); err != nil {
		return err
	}
	errs, err := w.checkLabel(ctx, req, s, obj, old)
	if err != nil {
		return err
	}
	errs = append(errs, req.Resource.ValidateMeta(req.Sub, obj, old)...)
	errs = append(errs, w.checkRights(ctx, req, s, obj, old, false)...)
	if s.ValidateUpdate != nil {
		errs = append(errs, s.ValidateUpdate(ctx, obj, old)...)
	}
	if len(errs) == 0 {
		errs = w.checkRights(ctx, req, s, obj, old, true)
	}
	return conclude(ctx, req, s, obj, old, errs)
}

// conclude refuses an object with faults, or else warns of the rest and brings the object into its canonical form. old is
// nil for a new object.
func conclude(ctx context.Context, req *Request, s *kinds.Strategy, obj, old kinds.Object, errs field.ErrorList) error {
	if len(errs) > 0 {
		return status.Invalid(req.Resource.Release, req.Resource.ErrorKind(obj), obj.GetName(), errs)
	}
	if err := spendStage(ctx); err != nil {
		return err
	}
	if s.Warnings != nil {
		for _, text := range s.Warnings(ctx, obj, old) {
			req.Warn(text)
		}
	}
	if s.Canonicalize != nil {
		s.Canonicalize(obj)
	}
	return nil
}

// replace commits an update with its planned operations. It writes nothing if nothing changes.
func (w *Writer) replace(ctx context.Context, req *Request, ch *Change, item *cache.Item, obj, old kinds.Object, extra []sqlstore.Op) (*Outcome, error) {
	if emptied(req.Resource.Storage, obj, old) {
		return w.removeEmptied(ctx, req, item, obj, old)
	}
	at, link := req.place(req.Name), obj.GetSelfLink() // which is not stored
	value, err := w.encode(ctx, req, item, obj, old)
	if err != nil {
		return nil, err
	}
	if req.DryRun && link != "" {
		obj.SetSelfLink(link)
		return answerUnstored(req, item, obj), nil
	}
	if req.DryRun {
		return &Outcome{Item: w.Objects.Unstored(at, item.Revision, strconv.FormatInt(item.Revision, 10), value), Object: obj}, nil
	}
	if value, err = w.fit(ctx, req, obj, value, item); err != nil {
		return nil, err
	}
	next, err := w.Objects.Replace(ctx, req.Permit, at, item, obj, value, extra)
	if err == nil && next == item {
		err = ch.recency.check(ctx, w, req.Permit, at, item)
	}
	if err != nil {
		return nil, err
	}
	return &Outcome{Item: next, Object: obj}, nil
}

// removeEmptied deletes an object whose last finalizer an update removes. Watchers see the state before the update; the client sees the
// state after it.
func (w *Writer) removeEmptied(ctx context.Context, req *Request, item *cache.Item, obj, old kinds.Object) (*Outcome, error) {
	at := req.place(req.Name)
	extra, err := w.Objects.Plan(ctx, req.Permit, at, nil, old, req.DryRun)
	if err == nil && !req.DryRun {
		_, err = w.Objects.Commit(ctx, req.Permit, at, sqlstore.Op{Verb: sqlstore.Delete, Expect: item.Revision, Value: item.JSON()}, extra)
	}
	if err != nil {
		return nil, err
	}
	return answerUnstored(req, item, obj), nil
}

// encode returns the bytes to store. If they differ from the stored ones only in times of managed fields, it
// keeps those times.
func (w *Writer) encode(ctx context.Context, req *Request, item *cache.Item, obj, old kinds.Object) ([]byte, error) {
	value, err := w.Objects.Encode(ctx, req.Resource, obj, item.Size())
	was, fields := old.GetManagedFields(), obj.GetManagedFields()
	if err != nil || !onlyTimesDiffer(was, fields) || len(value)+len(`"resourceVersion":"",`)+len(strconv.FormatInt(item.Revision, 10)) != item.Size() || !equalExceptMetadata(item.JSON(), value) {
		return value, err
	}
	obj.SetManagedFields(was)
	same, err := w.Objects.Encode(ctx, req.Resource, obj, item.Size())
	if err != nil || objects.Unchanged(item, same) {
		return same, err
	}
	obj.SetManagedFields(fields)
	return value, nil
}

// equalExceptMetadata reports whether two encoded objects are equal around the metadata of the second: a heartbeat
// differs there. If the second has no metadata, it returns true.
func equalExceptMetadata(stored, value []byte) bool {
	from, to := len(value), len(value)
	scan.Loose.Members(value, 0, func(name scan.Name, at int) (int, bool) {
		end := scan.Skip(value, at)
		if string(name.In(value)) != "metadata" || end < 0 {
			return end, true
		}
		from, to = at, end
		return end, false
	})
	return to == len(value) || bytes.HasPrefix(stored, value[:from]) && bytes.HasSuffix(stored, value[to:])
}

// createByUpdate handles a PUT or an apply of a missing object.
func (w *Writer) createByUpdate(ctx context.Context, req *Request, ch *Change) (*Outcome, error) {
	if !ch.MayCreate && req.Resource.Release.Has(release.AbsentFirst) {
		return nil, apierrors.NewNotFound(req.Resource.GroupResource(), req.Name)
	}
	if err := uidError(req, ch.UID, ""); err != nil {
		return nil, err
	}
	if !ch.MayCreate {
		return nil, apierrors.NewNotFound(req.Resource.GroupResource(), req.Name)
	}
	if !ch.creates.Valid() { // permission to update or patch does not suffice, even for a dry run
		at := req.place(req.Name)
		var err error
		if ch.creates, err = permits.Need(ctx, w.Authorizer, &authx.Attributes{
			User: req.User, Verb: "create", Namespace: at.Namespace, APIGroup: req.Resource.Group, APIVersion: req.Resource.Version,
			Resource: req.Resource.Plural, Subresource: at.Sub, Name: at.Name, ResourceRequest: true, Path: req.Path,
		}); err != nil {
			return nil, err
		}
	}
	obj, err := ch.next(req, nil, nil)
	if err != nil {
		return nil, err
	}
	as := *req
	as.Options = asCreateOptions(req.Options)
	out, err := w.create(ctx, &as, &creation{obj: obj, permit: ch.creates, own: ch.own})
	if apierrors.IsAlreadyExists(err) && !req.DryRun {
		// Another client created it in the meantime: now this is an update.
		return nil, &sqlstore.NotFoundError{Key: req.key(req.Name)}
	}
	return out, err
}

// asCreateOptions converts the options of an update to those of a create.
func asCreateOptions(options runtime.Object) *metav1.CreateOptions {
	o := &metav1.CreateOptions{}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	switch u := options.(type) {
	case *metav1.UpdateOptions:
		o.DryRun, o.FieldManager, o.FieldValidation = u.DryRun, u.FieldManager, u.FieldValidation
	case *metav1.PatchOptions:
		o.DryRun, o.FieldManager, o.FieldValidation = u.DryRun, u.FieldManager, u.FieldValidation
	}
	return o
}
