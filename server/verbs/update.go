package verbs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

func (h *Handler) update(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	from, body, options, err := h.readUpdate(c)
	if err != nil {
		return err
	}
	read := func(s codecs.Strictness) (kinds.Object, error) {
		obj := c.Resource.New()
		if err := h.decode(c, from, body, c.Resource.GVK(), obj, s); err != nil {
			return nil, err
		}
		if err := nameError(c, obj); err != nil {
			return nil, err
		}
		warnOwners(c, obj, false)
		return h.incoming(c.Resource, obj)
	}
	obj, err := read(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	ch := &change{
		intent: intent{manager: managerOf(c, options.FieldManager), options: options, dry: len(options.DryRun) > 0},
		create: c.Sub == nil && c.Resource.Storage.CreateOnUpdate,
		uid:    obj.GetUID(),
		pinned: obj.GetResourceVersion() != "",
	}
	ch.compute = func(kinds.Object, *cache.Item) (kinds.Object, error) {
		if first := obj; first != nil {
			obj = nil
			return first, nil
		}
		return read(codecs.Ignore)
	}
	out, err := h.change(c, ch)
	if err != nil {
		return err
	}
	return h.answer(c, form, out.code(), out.item, out.obj)
}

// change is one update of one object, as often as it has to be tried.
type change struct {
	intent
	create bool      // make the object where there is none
	uid    types.UID // the object must be this one, if set

	// compute makes the new object, in the stored version and with defaults, which
	// the caller may change. old is nil where there is none, and must not be changed.
	compute func(old kinds.Object, item *cache.Item) (kinds.Object, error)
	// own records ownership; nil takes what differs for the manager.
	own     func(obj, old kinds.Object) error
	creates permits.Permit // to make the object, once that was asked for
	// quiet is for writes that admission does not see.
	quiet bool
	// pinned says that the client names the version it replaces, as far as that is known.
	pinned bool
}

// outcome is what became of a change.
type outcome struct {
	item    *cache.Item  // nil for a dry run
	obj     kinds.Object // what was stored, or would have been
	created bool
}

func (o *outcome) code() int {
	if o.created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// change runs an update until it is stored, refused, or conflicts with a version
// that the client asked for; else until the request's deadline (decision 52).
func (h *Handler) change(c *Call, ch *change) (*outcome, error) {
	if err := objects.CheckName(c.Info.Name); err != nil {
		return nil, err
	}
	ctx, key := c.Context(), c.key(c.Info.Name)
	w := h.turns.Writer(key, c.User.Name)
	defer w.Done()
	for try := 0; ; try++ {
		if !ch.dry {
			if err := w.Try(ctx, ch.pinned); err != nil {
				return nil, err
			}
		}
		item, err := h.Objects.Find(ctx, c.Permit(), c.place(c.Info.Name))
		if err != nil {
			return nil, err
		}
		out, err := h.tryChange(ctx, c, ch, key, item)
		if err == nil {
			return out, nil
		}
		var stale *staleError
		if errors.As(err, &stale) {
			// The version asked for may be newer than what has come here yet.
			if stale.asked <= h.Objects.Revision() || try > 0 {
				return nil, stale.Unwrap()
			}
			if err := h.Objects.CatchUp(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err := h.Objects.Overtaken(ctx, err); err != nil {
			return nil, err
		}
		w.Lost()
	}
}

// staleError is a conflict with a version that the client named.
type staleError struct {
	asked int64
	err   error
}

func (e *staleError) Error() string { return e.err.Error() }
func (e *staleError) Unwrap() error { return e.err }

func (h *Handler) tryChange(ctx context.Context, c *Call, ch *change, key sqlstore.Key, item *cache.Item) (*outcome, error) {
	if item == nil {
		return h.createByUpdate(ctx, c, ch, key)
	}
	old, err := h.Objects.Decode(ctx, c.Resource, item)
	if err != nil {
		return nil, err
	}
	if err := uidError(c, ch.uid, old.GetUID(), key); err != nil {
		return nil, err
	}
	obj, err := ch.compute(old, item)
	if err != nil {
		return nil, err
	}
	if err := h.admitUpdate(ctx, c, ch, obj, old); err != nil {
		return nil, err
	}
	if err := h.matchVersion(c, obj, item); err != nil {
		return nil, err
	}
	var extra []sqlstore.Op
	if c.Sub == nil {
		if extra, err = h.Objects.Plan(ctx, c.Permit(), c.place(key.Name), obj, old, ch.dry); err != nil {
			return nil, err
		}
	}
	if err := h.prepareUpdate(ctx, c, obj, old); err != nil {
		return nil, err
	}
	if !ch.quiet {
		a := h.attributes(c, admission.Update, obj, old, ch.intent)
		if err := h.Admission.Validate(ctx, a); err != nil {
			return nil, err
		}
	}
	return h.store(ctx, c, ch, key, item, obj, old, extra)
}

// createByUpdate is a PUT or an apply of an object that is not there.
func (h *Handler) createByUpdate(ctx context.Context, c *Call, ch *change, key sqlstore.Key) (*outcome, error) {
	if err := uidError(c, ch.uid, "", key); err != nil {
		return nil, err
	}
	if !ch.create {
		return nil, apierrors.NewNotFound(c.Resource.GroupResource(), key.Name)
	}
	if err := h.mayCreate(ctx, c, ch, key); err != nil {
		return nil, err
	}
	obj, err := ch.compute(nil, nil)
	if err != nil {
		return nil, err
	}
	own := func(obj kinds.Object) error { return h.ownCreated(c, obj, ch.manager) }
	if ch.own != nil {
		own = func(obj kinds.Object) error { return ch.own(obj, nil) }
	}
	in := ch.intent
	in.options = asCreate(in)
	item, obj, err := h.createObject(c, ch.creates, obj, in, own)
	if apierrors.IsAlreadyExists(err) && !ch.dry {
		// Somebody made it meanwhile: now it is an update.
		return nil, &sqlstore.NotFoundError{Key: key}
	}
	if err != nil {
		return nil, err
	}
	return &outcome{item: item, obj: obj, created: true}, nil
}

// mayCreate asks, once for a change, whether the user may make the object: who may
// update or patch it may not yet do that. A dry run asks too.
func (h *Handler) mayCreate(ctx context.Context, c *Call, ch *change, key sqlstore.Key) error {
	if ch.creates.Valid() {
		return nil
	}
	var err error
	ch.creates, err = permits.Need(ctx, h.Authorizer, &authx.Attributes{
		User: c.User, Verb: "create", Namespace: key.Namespace, APIGroup: c.Info.Group, APIVersion: c.Info.Version,
		Resource: c.Info.Resource, Subresource: c.Info.Subresource, Name: key.Name, ResourceRequest: true, Path: c.Info.Path,
	})
	return err
}

// asCreate turns the options of an update into those of the create it becomes.
func asCreate(in intent) *metav1.CreateOptions {
	o := &metav1.CreateOptions{}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	switch u := in.options.(type) {
	case *metav1.UpdateOptions:
		o.DryRun, o.FieldManager, o.FieldValidation = u.DryRun, u.FieldManager, u.FieldValidation
	case *metav1.PatchOptions:
		o.DryRun, o.FieldManager, o.FieldValidation = u.DryRun, u.FieldManager, u.FieldValidation
	}
	return o
}

func uidError(c *Call, want, have types.UID, key sqlstore.Key) error {
	if want == "" || want == have {
		return nil
	}
	return apierrors.NewConflict(c.Resource.GroupResource(), key.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		registryKey(c.Resource, key), want, have))
}

// admitUpdate records ownership and lets admission change the object.
func (h *Handler) admitUpdate(ctx context.Context, c *Call, ch *change, obj, old kinds.Object) error {
	var err error
	switch {
	case ch.own != nil:
		err = ch.own(obj, old)
	case h.Owner == nil:
		obj.SetManagedFields(nil)
	default:
		err = h.inServed(c.Resource, obj, old, func(obj, old kinds.Object) error {
			return h.unowned(obj, h.Owner.AfterUpdate(c.Resource, c.Info.Subresource, old, obj, ch.manager, h.now()))
		})
	}
	if err != nil {
		return err
	}
	if !ch.quiet {
		a := h.attributes(c, admission.Update, obj, old, ch.intent)
		if err := h.Admission.Admit(ctx, a); err != nil {
			return err
		}
		warnOwners(c, obj, true)
	}
	if fields := old.GetManagedFields(); onlyTimesDiffer(fields, obj.GetManagedFields()) {
		obj.SetManagedFields(fields)
	}
	return nil
}

// matchVersion compares the version that the client sent with the stored one.
func (h *Handler) matchVersion(c *Call, obj kinds.Object, item *cache.Item) error {
	asked, err := askedVersion(obj)
	if err != nil {
		return err
	}
	switch {
	case asked == item.Revision, asked == 0 && h.unconditional(c):
		obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
		return nil
	case asked == 0:
		kind := schema.GroupKind{Group: c.Resource.Group, Kind: c.Resource.Plural}
		return status.Invalid(kind, item.Name, field.ErrorList{
			field.Invalid(metadataPath.Child("resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	return &staleError{asked: asked, err: apierrors.NewConflict(c.Resource.GroupResource(), item.Name, errors.New(status.Modified))}
}

// askedVersion is the version that an update wants to replace; 0 where it names none.
func askedVersion(obj kinds.Object) (int64, error) {
	rv := obj.GetResourceVersion()
	if rv == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0, status.Plain((&strconv.NumError{Func: "ParseUint", Num: rv, Err: errors.Unwrap(err)}).Error())
	}
	return int64(min(n, math.MaxInt64)), nil // no version is as large
}

func (h *Handler) unconditional(c *Call) bool {
	if c.Sub != nil && c.Sub.Update != nil && c.Sub.Update.UnconditionalUpdate {
		return true
	}
	return c.Resource.Storage.UnconditionalUpdate
}

// strategy is that of the subresource that is written through, or of the object.
func (c *Call) strategy() *kinds.Strategy {
	if c.Sub != nil && c.Sub.Update != nil {
		return c.Sub.Update
	}
	return &c.Resource.Storage.Strategy
}

// prepareUpdate resets what a client may not change, and validates.
func (h *Handler) prepareUpdate(ctx context.Context, c *Call, obj, old kinds.Object) error {
	if err := matchNamespace(c, obj); err != nil {
		return err
	}
	s := c.strategy()
	ctx = kinds.WithRequested(ctx, c.Resource)
	obj.SetGeneration(old.GetGeneration())
	if s.PrepareForUpdate != nil {
		s.PrepareForUpdate(ctx, obj, old)
	}
	keepMeta(obj, old)
	errs := validateMetaUpdate(c, obj, old)
	if s.ValidateUpdate != nil {
		errs = append(errs, s.ValidateUpdate(ctx, obj, old)...)
	}
	if len(errs) > 0 {
		return status.Invalid(kindOf(c.Resource, obj), obj.GetName(), errs)
	}
	if s.Warnings != nil {
		for _, w := range s.Warnings(ctx, obj, old) {
			c.Scope.Warn(w)
		}
	}
	if s.Canonicalize != nil {
		s.Canonicalize(obj)
	}
	return nil
}

// keepMeta copies from old what an update can neither change nor remove.
func keepMeta(obj, old kinds.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(grace)
	}
}

// store commits an update with what was planned for it; nothing is written that is
// there already, and an object that only waited for its last finalizer goes.
func (h *Handler) store(ctx context.Context, c *Call, ch *change, key sqlstore.Key, item *cache.Item, obj, old kinds.Object, extra []sqlstore.Op) (*outcome, error) {
	st := c.Resource.Storage
	gone := emptied(st, obj, old)
	if gone {
		var err error
		if extra, err = h.Objects.Plan(ctx, c.Permit(), c.place(key.Name), nil, old, ch.dry); err != nil {
			return nil, err
		}
	}
	if ch.dry {
		obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
		return &outcome{obj: obj}, nil
	}
	if gone {
		// Watchers see it as it was; the client, as it would have become.
		op := sqlstore.Op{Verb: sqlstore.Delete, Expect: item.Revision, Value: item.JSON}
		if _, err := h.Objects.Commit(ctx, c.Permit(), c.place(key.Name), op, extra); err != nil {
			return nil, err
		}
		obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
		return &outcome{obj: obj}, nil
	}
	value, err := objects.Encode(ctx, c.Resource, obj)
	if err != nil {
		return nil, err
	}
	op := sqlstore.Op{Verb: sqlstore.Update, Expect: item.Revision, Value: value}
	switch {
	case len(extra) == 0 && objects.Unchanged(item, value):
		return &outcome{item: item, obj: obj}, nil
	default:
		op.ExpiresAt = objects.Expiry(st, obj, h.Objects.Now())
		if op.Value, err = ch.fit(ctx, c.Resource, obj, value); err != nil {
			return nil, err
		}
	}
	next, err := h.Objects.Commit(ctx, c.Permit(), c.place(key.Name), op, extra)
	if err != nil {
		return nil, err
	}
	return &outcome{item: next, obj: obj}, nil
}

// patchable keeps the object's encoded form at hand for patches.
func (h *Handler) jsonOf(r *kinds.Resource, old kinds.Object, item *cache.Item) (kinds.Object, []byte, error) {
	if objects.Clean(r, item) {
		return old, item.JSON, nil
	}
	obj, err := objects.FromStored(r, objects.Copy(old))
	if err != nil {
		return nil, nil, err
	}
	data, err := h.Answers.Forms.JSON.Encode(nil, obj)
	return obj, data, err
}
