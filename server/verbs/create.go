package verbs

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// intent is what a write wants besides the object.
type intent struct {
	manager string // field manager
	options runtime.Object
	dry     bool
	applies bool // a server-side apply, which is about who owns what
}

func (h *Handler) create(c *Call) error {
	if c.Resource.Ending {
		err := apierrors.NewMethodNotSupported(c.Resource.GroupResource(), "create")
		err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
		return err
	}
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	obj := c.Resource.New()
	options, err := h.readCreate(c, c.Resource.GVK(), obj)
	if err != nil {
		return err
	}
	if err := matchNamespace(c, obj); err != nil {
		return err
	}
	if obj, err = h.incoming(c.Resource, obj); err != nil {
		return err
	}
	in := intent{manager: managerOf(c, options.FieldManager), options: options, dry: len(options.DryRun) > 0}
	own := func(obj kinds.Object) error { return h.ownCreated(c, obj, in.manager) }
	item, obj, err := h.createObject(c, c.Permit(), obj, in, own)
	if err != nil {
		return err
	}
	return h.answer(c, form, http.StatusCreated, item, obj)
}

// answer sends a stored item, or the object of a dry run.
func (h *Handler) answer(c *Call, form form, code int, item *cache.Item, obj kinds.Object) error {
	if item != nil {
		return h.Answers.Item(&c.Request, form, code, item)
	}
	return h.Answers.DryRun(&c.Request, form, code, obj)
}

// incoming converts an object that a client sent to the stored version, and
// fills in what it left out.
func (h *Handler) incoming(r *kinds.Resource, obj kinds.Object) (kinds.Object, error) {
	obj, err := objects.ToStored(r, obj)
	if err != nil {
		return nil, badRequest(err)
	}
	if r.Storage.Default != nil {
		r.Storage.Default(obj)
	}
	return obj, nil
}

// ownCreated records the manager of a new object.
func (h *Handler) ownCreated(c *Call, obj kinds.Object, manager string) error {
	if h.Owner == nil {
		obj.SetManagedFields(nil)
		return nil
	}
	return h.inServed(c.Resource, obj, nil, func(obj, _ kinds.Object) error {
		return h.unowned(obj, h.Owner.AfterCreate(c.Resource, "", obj, manager, h.now()))
	})
}

// unowned lets an object pass whose owners cannot be told: it is stored without any.
func (h *Handler) unowned(obj kinds.Object, err error) error {
	if err != nil {
		h.log().Debug("an object is stored without managed fields", "error", err)
		obj.SetManagedFields(nil)
	}
	return nil
}

// inServed calls fn with the objects in r's version, and brings the managed
// fields back.
func (h *Handler) inServed(r *kinds.Resource, obj, old kinds.Object, fn func(obj, old kinds.Object) error) error {
	if r.FromStorage == nil || r.Custom {
		return fn(obj, old)
	}
	v, err := objects.FromStored(r, objects.Copy(obj))
	if err != nil {
		return err
	}
	var o kinds.Object
	if old != nil {
		if o, err = objects.FromStored(r, objects.Copy(old)); err != nil {
			return err
		}
	}
	if err := fn(v, o); err != nil {
		return err
	}
	obj.SetManagedFields(v.GetManagedFields())
	return nil
}

// attributes describe a write to admission.
func (h *Handler) attributes(c *Call, op admission.Operation, obj, old runtime.Object, in intent) *admission.Attributes {
	a := &admission.Attributes{
		Operation: op, Resource: c.Resource, Subresource: c.Info.Subresource,
		Namespace: c.Info.Namespace, Name: c.Info.Name,
		Object: obj, Old: old, Options: in.options, DryRun: in.dry, User: c.User,
		Warn: c.Scope.Warn, Annotate: c.Scope.Annotate,
		Recorded: c.Scope.Audit != nil && c.Scope.Audit.WantsRequest(),
	}
	if !c.Resource.Namespaced {
		a.Namespace = ""
		if c.Resource.Storage != nil && c.Resource.Storage.Key == namespaces {
			a.Namespace = a.Name
		}
	}
	return a
}

// createObject makes a new object of the request's resource and stores it. obj is
// in the stored version, with defaults; p permits it; own records who owns its fields. For a dry
// run the item is nil and the object is what would have been stored.
func (h *Handler) createObject(c *Call, p permits.Permit, obj kinds.Object, in intent, own func(kinds.Object) error) (*cache.Item, kinds.Object, error) {
	ctx, st := c.Context(), c.Resource.Storage
	wipe(obj)
	warnOwners(c, obj, false)
	if err := own(obj); err != nil {
		return nil, nil, err
	}
	a := h.attributes(c, admission.Create, obj, nil, in)
	if a.Name == "" {
		a.Name = obj.GetName()
	}
	if c.Resource.Storage.Key == namespaces {
		a.Namespace = a.Name
	}
	if err := h.Admission.Admit(ctx, a); err != nil {
		return nil, nil, err
	}
	warnOwners(c, obj, true)
	if err := matchNamespace(c, obj); err != nil {
		return nil, nil, err
	}
	if c.Info.Verb != "create" { // an update looks at the version, though there is none to compare it with
		if _, err := askedVersion(obj); err != nil {
			return nil, nil, err
		}
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	var pristine kinds.Object
	if generated || st.Allocate != nil {
		pristine = objects.Copy(obj) // what is allocated in vain must not be asked for again
	}
	// Those who want the same of what there is little of go one after the other.
	w := h.turns.Writer(sqlstore.Key{Resource: st.Key}, c.User.Name)
	defer w.Done()
	for try := 1; ; try++ {
		if st.Allocate != nil && !in.dry {
			if err := w.Try(ctx, false); err != nil {
				return nil, nil, err
			}
		}
		if generated {
			obj.SetName(generate(obj.GetGenerateName()))
		}
		extra, err := h.Objects.Plan(ctx, p, c.place(obj.GetName()), obj, nil, in.dry)
		if err != nil {
			return nil, nil, err
		}
		if err := h.prepareCreate(ctx, c, obj); err != nil {
			return nil, nil, err
		}
		a.Object = obj
		if generated {
			a.Name = obj.GetName()
		}
		if err := h.Admission.Validate(ctx, a); err != nil {
			return nil, nil, err
		}
		item, err := h.insert(ctx, c, p, obj, extra, in)
		var exists *sqlstore.ExistsError
		switch {
		case err == nil:
			return item, obj, nil
		case errors.Is(err, objects.ErrClaimed):
			w.Lost()
			obj = objects.Copy(pristine)
			continue
		case !errors.As(err, &exists):
			return nil, nil, err
		case generated && try < nameTries:
			obj = objects.Copy(pristine)
			continue
		case generated:
			return nil, nil, apierrors.NewGenerateNameConflict(c.Resource.GroupResource(), obj.GetName(), 1)
		}
		return nil, nil, h.existsError(ctx, c, p, obj, exists)
	}
}

// existsError tells the client whether the object in its way is on its way out.
func (h *Handler) existsError(ctx context.Context, c *Call, p permits.Permit, obj kinds.Object, exists *sqlstore.ExistsError) error {
	err := apierrors.NewAlreadyExists(c.Resource.GroupResource(), obj.GetName())
	if werr := h.Objects.Overtaken(ctx, exists); werr != nil {
		return err
	}
	if there, serr := h.Objects.Standing(p, c.place(obj.GetName())); serr == nil && there.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// matchNamespace checks and fills in the namespace.
func matchNamespace(c *Call, obj metav1.Object) error {
	if !c.Resource.Namespaced {
		obj.SetNamespace("")
		return nil
	}
	if err := namespaceError(c, obj); err != nil {
		return err
	}
	obj.SetNamespace(c.Info.Namespace)
	return nil
}

// prepareCreate resets what a client may not choose, and validates.
func (h *Handler) prepareCreate(ctx context.Context, c *Call, obj kinds.Object) error {
	s := &c.Resource.Storage.Strategy
	ctx = kinds.WithRequested(ctx, c.Resource)
	stamp(obj, h.now())
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(ctx, obj)
	}
	if errs := h.validateCreate(ctx, c, s, obj); len(errs) > 0 {
		return status.Invalid(kindOf(c.Resource, obj), obj.GetName(), errs)
	}
	if s.Warnings != nil {
		for _, w := range s.Warnings(ctx, obj, nil) {
			c.Scope.Warn(w)
		}
	}
	if s.Canonicalize != nil {
		s.Canonicalize(obj)
	}
	return nil
}

// kindOf is the kind that errors say an object is of: for a custom one what it says
// itself, which may be what is wrong with it.
func kindOf(r *kinds.Resource, obj kinds.Object) schema.GroupKind {
	if said := obj.GetObjectKind().GroupVersionKind().GroupKind(); r.Custom && said.Kind != "" {
		return said
	}
	return r.Storage.GVK.GroupKind()
}

var metadataPath = field.NewPath("metadata")

func (h *Handler) validateCreate(ctx context.Context, c *Call, s *kinds.Strategy, obj kinds.Object) field.ErrorList {
	errs := validateMetaCreate(c, s, obj)
	if s.Validate != nil {
		errs = append(errs, s.Validate(ctx, obj)...)
	}
	if len(errs) == 0 && obj.GetName() != "" {
		for _, msg := range path.IsValidPathSegmentName(obj.GetName()) {
			errs = append(errs, field.Invalid(metadataPath.Child("name"), obj.GetName(), msg))
		}
	}
	return errs
}

// nameRule is how names of a kind are checked.
func nameRule(s *kinds.Strategy) genericvalidation.ValidateNameFunc {
	if s.ValidateName == nil {
		return genericvalidation.NameIsDNSSubdomain
	}
	return genericvalidation.ValidateNameFunc(s.ValidateName)
}

// finalizerNames checks that finalizers of built-in kinds are qualified, or among
// the few that need not be.
func finalizerNames(obj metav1.Object) field.ErrorList {
	var errs field.ErrorList
	for i, f := range obj.GetFinalizers() {
		switch f {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(f, "/") {
			errs = append(errs, field.Invalid(metadataPath.Child("finalizers").Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// insert stores a new object with what was planned for it, or for a dry run finds
// out whether it could be.
func (h *Handler) insert(ctx context.Context, c *Call, p permits.Permit, obj kinds.Object, extra []sqlstore.Op, in intent) (*cache.Item, error) {
	at := c.place(obj.GetName())
	if in.dry { // what only the store finds fault with is found by no dry run
		return nil, h.Objects.CheckVacant(ctx, p, at)
	}
	if n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64); err == nil && n > 0 && c.Info.Verb == "create" {
		return nil, status.Plain("resourceVersion should not be set on objects to be created")
	}
	if c.Resource.Custom && c.Resource.Storage.Default != nil {
		// A status that was dropped may have a default, as anybody who reads what is
		// stored would find.
		c.Resource.Storage.Default(obj)
	}
	value, err := objects.Encode(ctx, c.Resource, obj)
	if err == nil {
		value, err = in.fit(ctx, c.Resource, obj, value)
	}
	if err != nil {
		return nil, err
	}
	return h.Objects.Commit(ctx, p, at, sqlstore.Op{
		Verb: sqlstore.Create, Value: value, ExpiresAt: objects.Expiry(c.Resource.Storage, obj, h.Objects.Now()),
	}, extra)
}

// fit gives the value to store for obj, whose encoded form is value. One that is too
// large goes without the record of who owns its fields, unless that was the point.
func (in *intent) fit(ctx context.Context, r *kinds.Resource, obj kinds.Object, value []byte) ([]byte, error) {
	err := objects.CheckSize(value)
	if err == nil || in.applies || len(obj.GetManagedFields()) == 0 {
		return value, err
	}
	obj.SetManagedFields(nil)
	if value, err = objects.Encode(ctx, r, obj); err != nil {
		return nil, err
	}
	return value, objects.CheckSize(value)
}
