package writes

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// This file is for requests with their own kinds of writes: a binding, an eviction.

// Admit runs admission for the body of a subresource or of a virtual resource (op is Create), or for the
// options of a connection (Connect). The checks run between mutating and validating plugins.
func (w *Writer) Admit(ctx context.Context, req *Request, op admission.Operation, obj runtime.Object, checks ...func() error) error {
	ctx = kinds.WithRequested(ctx, req.Resource)
	a := req.attributes(op, obj, nil)
	if m := a.Meta(); a.Name == "" && m != nil {
		a.Name = m.GetName()
	}
	if err := w.Admission.Admit(ctx, a); err != nil {
		return err
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return w.Admission.Validate(ctx, a)
}

// Rewrite changes a stored object with fn, again after each conflict with another write. It does no
// defaulting, validation, ownership or admission. It returns 404 if there is no object. fn may fail with
// PreconditionFailed. The returned object has been stored, unless the request is a dry run, and has its resource
// version.
func (w *Writer) Rewrite(ctx context.Context, req *Request, at objects.Place, fn func(obj kinds.Object) error) (kinds.Object, error) {
	ctx = kinds.WithRequested(ctx, req.Resource)
	all := attempts{key: at.Key(), user: req.User.Name, dry: req.DryRun}
	var obj kinds.Object
	var recent recency
	err := all.run(ctx, w, func() (err error) {
		obj, err = w.tryRewrite(ctx, req, at, fn, &recent)
		return err
	})
	return obj, err
}

// tryRewrite rewrites the present object.
func (w *Writer) tryRewrite(ctx context.Context, req *Request, at objects.Place, fn func(obj kinds.Object) error, recent *recency) (kinds.Object, error) {
	obj, item, err := w.Objects.Live(ctx, req.Permit, at)
	if err != nil {
		return nil, err
	}
	err = fn(obj)
	if refused(err) || err == nil && req.DryRun {
		if err := recent.check(ctx, w, req.Permit, at, item); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return obj, err
	}
	if req.DryRun {
		at.Resource.AsStored(obj)
		return obj, nil
	}
	return obj, w.rewrite(ctx, req, at, item, obj)
}

func (w *Writer) rewrite(ctx context.Context, req *Request, at objects.Place, item *cache.Item, obj kinds.Object) error {
	value, err := w.Objects.Encode(ctx, at.Resource, obj, item.Size())
	if err != nil {
		return err
	}
	if err := w.Objects.CheckSize(value, item); err != nil {
		return err
	}
	next, err := w.Objects.Replace(ctx, req.Permit, at, item, obj, value, nil)
	if err == nil && next == item {
		err = w.Objects.Current(ctx, req.Permit, at, item)
	}
	if err != nil {
		return err
	}
	obj.SetResourceVersion(strconv.FormatInt(next.Revision, 10))
	return nil
}

// Edit updates the object of a request as a PUT by its manager would, with validation and field ownership but
// without admission, again after each conflict with another write.
func (w *Writer) Edit(ctx context.Context, req *Request, fn func(obj kinds.Object) error) error {
	_, err := w.Update(ctx, req, &Change{unadmitted: true, Compute: func(old kinds.Object, _ *cache.Item) (kinds.Object, error) {
		obj := objects.Copy(old)
		return obj, fn(obj)
	}})
	return err
}

// answerUnstored answers with an object that is not stored, at the revision of the stored one.
func answerUnstored(req *Request, item *cache.Item, obj kinds.Object) *Outcome {
	req.Resource.AsStored(obj)
	obj.SetResourceVersion(strconv.FormatInt(item.Revision, 10))
	return &Outcome{Object: obj}
}
