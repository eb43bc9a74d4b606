package writes

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// createByUpdate is a PUT or an apply of an object that is not there.
func (w *Writer) createByUpdate(ctx context.Context, req *Request, ch *Change) (*Outcome, error) {
	if err := uidError(req, ch.UID, ""); err != nil {
		return nil, err
	}
	if !ch.MayCreate {
		return nil, apierrors.NewNotFound(req.Resource.GroupResource(), req.Name)
	}
	if err := w.askToCreate(ctx, req, ch); err != nil {
		return nil, err
	}
	obj, err := ch.Compute(nil, nil)
	if err != nil {
		return nil, err
	}
	own := func(obj kinds.Object) error { return w.ownCreated(req, obj) }
	if ch.own != nil {
		own = func(obj kinds.Object) error { return ch.own(obj, nil) }
	}
	as := *req
	as.Options = asCreateOptions(req.Options)
	out, err := w.create(ctx, &as, &creation{obj: obj, permit: ch.creates, own: own})
	if apierrors.IsAlreadyExists(err) && !req.DryRun {
		// Somebody made it meanwhile: now it is an update.
		return nil, &sqlstore.NotFoundError{Key: req.key(req.Name)}
	}
	return out, err
}

// askToCreate asks, once for a change, whether the user may make the object: who may
// update or patch it may not yet do that. A dry run asks too.
func (w *Writer) askToCreate(ctx context.Context, req *Request, ch *Change) error {
	if ch.creates.Valid() {
		return nil
	}
	at := req.place(req.Name)
	var err error
	ch.creates, err = permits.Need(ctx, w.Authorizer, &authx.Attributes{
		User: req.User, Verb: "create", Namespace: at.Namespace, APIGroup: req.Resource.Group, APIVersion: req.Resource.Version,
		Resource: req.Resource.Plural, Subresource: at.Sub, Name: at.Name, ResourceRequest: true, Path: req.Path,
	})
	return err
}

// asCreateOptions turns the options of an update into those of the create it becomes.
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
