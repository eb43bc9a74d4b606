package writes

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Create stores a new object that the client sent in the version of the request.
func (w *Writer) Create(ctx context.Context, req *Request, obj kinds.Object) (*Outcome, error) {
	ctx = kinds.WithRequested(ctx, req.Resource)
	if err := MatchNamespace(req, obj); err != nil {
		return nil, err
	}
	obj, err := Incoming(req.Resource, obj)
	if err != nil {
		return nil, err
	}
	return w.create(ctx, req, &creation{obj: obj, permit: req.Permit})
}

// Incoming converts an object from a client to the stored version, and sets defaults.
func Incoming(r *kinds.Resource, obj kinds.Object) (kinds.Object, error) {
	obj, err := r.ToWorking(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r.SetDefaults(obj)
	return obj, nil
}

// creation is a new object, from a create or an update.
type creation struct {
	obj      kinds.Object                      // in the stored version, with defaults
	permit   permits.Permit                    // to create it
	own      func(obj, old kinds.Object) error // records field owners; nil: the manager owns all fields
	at       *admission.Attributes
	pristine kinds.Object // before allocations and generated names; nil if there are none
}

// EndingText is in the refusal of a new object whose definition is being deleted.
const EndingText = "create not allowed while custom resource definition is terminating"

// create stores a new object.
func (w *Writer) create(ctx context.Context, req *Request, c *creation) (*Outcome, error) {
	if r := req.Resource; r.Ending && r.Release.Has(release.ForbiddenCreates) {
		return nil, apierrors.NewForbidden(r.GroupResource(), c.obj.GetName(), errors.New(EndingText))
	}
	if err := w.admitCreate(ctx, req, c); err != nil {
		return nil, err
	}
	st := req.Resource.Storage
	generated := c.obj.GetName() == "" && c.obj.GetGenerateName() != ""
	if generated || st.Allocate != nil {
		c.pristine = objects.Copy(c.obj) // a repeated attempt must not request an unused allocation of this one
	}
	// Writers that claim from the same scarce pool take turns.
	turn := w.queues.Writer(sqlstore.Key{Resource: st.Key}, req.User.Name)
	defer turn.Done()
	for try := 1; ; try++ {
		if st.Allocate != nil && !req.DryRun {
			if err := turn.Wait(ctx, false); err != nil {
				return nil, err
			}
		}
		if generated {
			name := c.obj.GetGenerateName()
			if !st.NameIsBase {
				name = generate(name)
			}
			c.obj.SetName(name)
			c.at.Name = c.obj.GetName()
		}
		item, err := w.tryCreate(ctx, req, c)
		var exists *sqlstore.ExistsError
		switch {
		case err == nil:
			if !req.DryRun {
				if err := w.undoOrphan(ctx, req, item, c.obj); err != nil {
					return nil, err
				}
			}
			return &Outcome{Item: item, Object: c.obj, Created: true}, nil
		case errors.Is(err, objects.ErrClaimed):
			turn.Conflicted()
		case !errors.As(err, &exists):
			return nil, err
		case !generated, try >= nameTries:
			return nil, w.existsError(ctx, req, c, exists)
		}
		c.obj = objects.Copy(c.pristine)
	}
}

// tryCreate allocates, validates and stores the object; in a dry run it only checks whether it could. It fails with ErrClaimed if
// another write claimed or released what the object needs.
func (w *Writer) tryCreate(ctx context.Context, req *Request, c *creation) (*cache.Item, error) {
	extra, err := w.Objects.Plan(ctx, c.permit, req.place(c.obj.GetName()), c.obj, nil, req.DryRun)
	if err != nil {
		return nil, err
	}
	if err := w.prepareCreate(ctx, req, c.obj); err != nil {
		return nil, err
	}
	c.at.Object = c.obj
	if err := w.Admission.Validate(ctx, c.at); err != nil {
		return nil, err
	}
	r, at := req.Resource, req.place(c.obj.GetName())
	sent := c.obj.GetResourceVersion()
	if req.DryRun { // a dry run does not find conflicts that only the store detects
		if err := w.Objects.CheckVacant(ctx, c.permit, at); err != nil {
			return nil, err
		}
	} else if n, err := strconv.ParseUint(sent, 10, 64); err == nil && n > 0 && req.Verb == "create" {
		return nil, status.Plain("resourceVersion should not be set on objects to be created")
	}
	if f := r.Storage.Complete; f != nil {
		f(c.obj)
	}
	value, err := w.Objects.Encode(ctx, r, c.obj, 0)
	if err == nil && req.DryRun {
		return w.Objects.Unstored(at, 0, sent, value), nil
	}
	if err == nil {
		value, err = w.fit(ctx, req, c.obj, value, nil)
	}
	if err != nil {
		return nil, err
	}
	return w.Objects.Commit(ctx, c.permit, at, sqlstore.Op{
		Verb: sqlstore.Create, Value: value, ExpiresAt: objects.Expiry(r.Storage, c.obj, w.Objects.Now()),
	}, extra)
}

// admitCreate records ownership and runs mutating admission.
func (w *Writer) admitCreate(ctx context.Context, req *Request, c *creation) error {
	ResetServerFields(c.obj)
	warnOwners(req, c.obj)
	own := c.own
	if own == nil {
		own = func(obj, _ kinds.Object) error { return w.recordOwner(req, obj, nil) }
	}
	if err := own(c.obj, nil); err != nil {
		return err
	}
	c.at = req.attributes(admission.Create, c.obj, nil)
	if c.at.Name == "" {
		c.at.Name = c.obj.GetName()
	}
	c.at.Namespace = req.Resource.NamespaceOf(req.Namespace, c.at.Name)
	if err := w.Admission.Admit(ctx, c.at); err != nil {
		return err
	}
	warnAdmittedOwners(req, c.obj)
	if err := MatchNamespace(req, c.obj); err != nil {
		return err
	}
	if req.Verb == "create" {
		return nil
	}
	// An update checks the resource version, though there is none to compare it with.
	_, err := askedRevision(c.obj)
	return err
}

// prepareCreate resets the fields that a client may not set, and validates.
func (w *Writer) prepareCreate(ctx context.Context, req *Request, obj kinds.Object) error {
	s := &req.Resource.Storage.Strategy
	stamp(obj, w.Clock())
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(ctx, obj)
	}
	if err := spendStage(ctx); err != nil {
		return err
	}
	var errs field.ErrorList
	late := req.Resource.ValidatesMetaLast(req.Sub)
	if !late {
		errs = req.Resource.ValidateNewMeta(req.Sub, obj)
	}
	labelled, err := w.checkLabel(ctx, req, s, obj, nil)
	if err != nil {
		return err
	}
	errs = append(errs, labelled...)
	if s.Validate != nil {
		errs = append(errs, s.Validate(ctx, obj)...)
	}
	if late && len(errs) == 0 {
		errs = req.Resource.ValidateNewMeta(req.Sub, obj)
	}
	if len(errs) == 0 && obj.GetName() != "" {
		for _, msg := range path.IsValidPathSegmentName(obj.GetName()) {
			errs = append(errs, field.Invalid(metadataPath.Child("name"), obj.GetName(), msg))
		}
		if name := obj.GetName(); !utf8.ValidString(name) || strings.ContainsRune(name, 0) { // JSON or PostgreSQL cannot hold it
			errs = append(errs, field.Invalid(metadataPath.Child("name"), name, "must be valid UTF-8 without NUL"))
		}
	}
	return conclude(ctx, req, s, obj, nil, errs)
}

// fit returns the value to store for obj, whose encoded form is value, in place of live. It drops the managed
// fields of a value that is too large, unless the request is an apply.
func (w *Writer) fit(ctx context.Context, req *Request, obj kinds.Object, value []byte, live *cache.Item) ([]byte, error) {
	err := w.Objects.CheckSize(value, live)
	if err == nil || req.applies || len(obj.GetManagedFields()) == 0 {
		return value, err
	}
	obj.SetManagedFields(nil)
	if value, err = w.Objects.Encode(ctx, req.Resource, obj, len(value)); err != nil {
		return nil, err
	}
	return value, w.Objects.CheckSize(value, live)
}

// existsError returns the error for an existing object; it tells whether the object is being deleted.
func (w *Writer) existsError(ctx context.Context, req *Request, c *creation, exists *sqlstore.ExistsError) error {
	err := apierrors.NewAlreadyExists(req.Resource.GroupResource(), c.obj.GetName())
	if c.obj.GetGenerateName() != "" { // even if the client chose the name
		err = apierrors.NewGenerateNameConflict(req.Resource.GroupResource(), c.obj.GetName(), 1)
	}
	if werr := w.Objects.AwaitConflict(ctx, exists); werr != nil {
		return err
	}
	if there, serr := w.Objects.Existing(c.permit, req.place(c.obj.GetName())); serr == nil && there.Deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}
