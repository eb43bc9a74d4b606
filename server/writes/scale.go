package writes

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// ScaleKind is the kind through which a number of replicas is read and written.
var ScaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// ScaleOf returns the Scale of an object in the version of the request.
func ScaleOf(m *kinds.ScaleMapping, obj kinds.Object) *autoscalingv1.Scale {
	spec, running := m.Replicas(obj)
	s := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: spec},
		Status: autoscalingv1.ScaleStatus{Replicas: running},
	}
	if m.Selector != nil {
		s.Status.Selector = m.Selector(obj)
	}
	s.SetGroupVersionKind(ScaleKind)
	return s
}

// scaling is a change of a number of replicas through a Scale.
type scaling struct {
	Change
	edit func(before *autoscalingv1.Scale, of kinds.Object) (*autoscalingv1.Scale, error)
}

// UpdateScale replaces the Scale of an object, and returns the new one.
func (w *Writer) UpdateScale(ctx context.Context, req *Request, sent *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	if err := matchPath(req, sent); err != nil {
		return nil, err
	}
	return w.scale(ctx, req, &scaling{
		Change: Change{UID: sent.UID},
		edit:   func(*autoscalingv1.Scale, kinds.Object) (*autoscalingv1.Scale, error) { return sent.DeepCopy(), nil },
	})
}

// PatchScale patches the Scale of an object, and returns the new one.
func (w *Writer) PatchScale(ctx context.Context, req *Request, p *apply.Patch) (*autoscalingv1.Scale, error) {
	return w.scale(ctx, req, &scaling{edit: func(before *autoscalingv1.Scale, _ kinds.Object) (*autoscalingv1.Scale, error) {
		patched, problems, err := p.Change(ctx, ScaleKind, before, nil)
		if err != nil {
			return nil, status.Show(err)
		}
		warn(req, problems)
		s, ok := patched.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewBadRequest("the patch makes it no Scale any more")
		}
		return s, matchPath(req, s)
	}})
}

// ApplyScale merges a manager's configuration of a Scale into that of an object. The merge determines the
// number of replicas: if this manager no longer sets it, the value of its remaining owners stays.
func (w *Writer) ApplyScale(ctx context.Context, req *Request, a *Applied) (*autoscalingv1.Scale, error) {
	var owners []metav1.ManagedFieldsEntry // of the last object that edit read
	own := func(obj, _ kinds.Object) error {
		obj.SetManagedFields(owners)
		return nil
	}
	return w.scale(ctx, req, &scaling{Change: Change{own: own}, edit: func(before *autoscalingv1.Scale, obj kinds.Object) (*autoscalingv1.Scale, error) {
		merged, after, err := w.Owner.ApplyScale(req.Resource, req.sub(), obj, a.Body, req.Manager, a.Force)
		if err != nil {
			return nil, status.Show(asScale(req, err))
		}
		owners = after
		next := before.DeepCopy()
		next.ObjectMeta, next.Spec = merged.ObjectMeta, merged.Spec
		next.ManagedFields = nil
		return next, matchPath(req, next)
	}})
}

// scale updates an object through its Scale.
func (w *Writer) scale(ctx context.Context, req *Request, sc *scaling) (*autoscalingv1.Scale, error) {
	own := sc.own
	if own == nil {
		own = func(obj, old kinds.Object) error { return w.ownScale(req, obj, old) }
	}
	sc.own = func(obj, old kinds.Object) error {
		err := inServed(req.Resource, obj, old, own)
		clearTimes(obj, req.sub())
		return err
	}
	sc.unadmitted = true // computeScale runs admission on the Scale
	sc.Compute = func(old kinds.Object, _ *cache.Item) (kinds.Object, error) {
		return w.computeScale(ctx, req, sc, old)
	}
	out, err := w.Update(ctx, req, &sc.Change)
	if err != nil {
		return nil, err
	}
	obj, err := req.Resource.ToServed(out.Object)
	if err != nil {
		return nil, err
	}
	if out.Item != nil {
		obj.SetResourceVersion(strconv.FormatInt(out.Item.Revision, 10))
	}
	return ScaleOf(req.Sub.Scale, obj), nil
}

// computeScale applies a changed Scale to an object in the stored version.
func (w *Writer) computeScale(ctx context.Context, req *Request, sc *scaling, old kinds.Object) (kinds.Object, error) {
	obj, err := req.Resource.ToServed(objects.Copy(old))
	if err != nil {
		return nil, err
	}
	before := ScaleOf(req.Sub.Scale, obj)
	next, err := sc.edit(before, obj)
	if err != nil {
		return nil, err
	}
	next.Namespace = obj.GetNamespace()
	a := req.attributes(admission.Update, next, before)
	if err := w.Admission.Admit(ctx, a); err != nil {
		return nil, err
	}
	if err := MatchNamespace(req, next); err != nil {
		return nil, err
	}
	if req.Sub.Scale.AnyNumber {
		if next.Spec.Replicas == kinds.NoReplicas {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+strings.Join(req.Sub.Scale.ReplicasPath, ".")))
		}
		if before.Spec.Replicas == kinds.NoReplicas {
			before.Spec.Replicas = 0 // as validating admission sees it
		}
	} else if err := validScale(req.Resource.Release, next); err != nil {
		return nil, err
	}
	if err := w.Admission.Validate(ctx, a); err != nil {
		return nil, err
	}
	if next.UID != "" && next.UID != obj.GetUID() {
		return nil, PreconditionFailed(apierrors.NewConflict(
			schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Plural + "/scale"}, obj.GetName(),
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", next.UID, obj.GetUID())))
	}
	req.Sub.Scale.SetReplicas(obj, next.Spec.Replicas)
	if next.ResourceVersion != "" {
		obj.SetResourceVersion(next.ResourceVersion)
	}
	return req.Resource.ToWorking(obj)
}

func validScale(v release.Version, s *autoscalingv1.Scale) error {
	errs := genericvalidation.ValidateObjectMetaAccessor(rules.Metadata(s), true, genericvalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, genericvalidation.ValidateNonnegativeField(int64(s.Spec.Replicas), field.NewPath("spec", "replicas"))...)
	if len(errs) == 0 {
		return nil
	}
	return status.Invalid(v, ScaleKind.GroupKind(), s.Name, errs)
}
