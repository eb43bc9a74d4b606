package verbs

import (
	"fmt"
	"net/http"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/status"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scale reads or writes the number of replicas through a Scale.
func (h *Handler) scale(c *Call, verb string) error {
	switch verb {
	case "get":
		return h.getScale(c)
	case "update":
		return h.updateScale(c)
	case "patch":
		return h.patchScale(c)
	}
	return status.NotAllowed()
}

// scaleOf shows an object, in the version of the request, as a Scale.
func scaleOf(m *kinds.ScaleMapping, obj kinds.Object) *autoscalingv1.Scale {
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
	s.SetGroupVersionKind(scaleKind)
	return s
}

func (h *Handler) getScale(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	obj, _, err := h.Objects.Live(c.Context(), c.Permit(), c.place(c.Info.Name))
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return apierrors.NewNotFound(scaleResource(c.Resource), c.Info.Name)
	}
	if err != nil {
		return err
	}
	if obj, err = objects.FromStored(c.Resource, obj); err != nil {
		return err
	}
	if check := c.Sub.Scale.Check; check != nil {
		if err := check(obj); err != nil {
			return err
		}
	}
	return h.Answers.Scale(&c.Request, form, http.StatusOK, scaleOf(c.Sub.Scale, obj))
}

// scaleResource names the scale of a resource in errors. That of the core group, which
// has none of its own, goes by the group of scales.
func scaleResource(r *kinds.Resource) schema.GroupResource {
	group := r.Group
	if group == "" {
		group = scaleKind.Group
	}
	return schema.GroupResource{Group: group, Resource: r.Plural + "/scale"}
}

func (h *Handler) updateScale(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	from, body, options, err := h.readUpdate(c)
	if err != nil {
		return err
	}
	sent := &autoscalingv1.Scale{}
	if err := h.decode(c, from, body, scaleKind, sent, strictness(options.FieldValidation)); err != nil {
		return err
	}
	if err := nameError(c, sent); err != nil {
		return err
	}
	in := intent{manager: managerOf(c, options.FieldManager), options: options, dry: len(options.DryRun) > 0}
	return h.changeScale(c, form, &change{intent: in, uid: sent.UID}, func(*autoscalingv1.Scale, *cache.Item) (*autoscalingv1.Scale, error) {
		return sent.DeepCopy(), nil
	})
}

func (h *Handler) patchScale(c *Call) error {
	patchType, options, form, body, err := h.readPatch(c)
	if err != nil {
		return err
	}
	in := intent{manager: managerOf(c, options.FieldManager), options: options, dry: len(options.DryRun) > 0}
	if patchType == codecs.PatchApplyYAML || patchType == codecs.PatchApplyCBOR {
		if body, err = applyBody(patchType, body); err != nil {
			return err
		}
		return h.applyScale(c, form, in, options, body)
	}
	p := &apply.Patch{Type: patchType, Body: body, Strictness: strictness(options.FieldValidation), JSON: jsoncodec.Codec{}, Known: h.known}
	return h.changeScale(c, form, &change{intent: in}, func(old *autoscalingv1.Scale, _ *cache.Item) (*autoscalingv1.Scale, error) {
		patched, warnings, err := h.Patcher.Change(c.Context(), p, scaleKind, old, nil)
		if err != nil {
			return nil, status.Show(err)
		}
		h.warn(c, warnings)
		s, ok := patched.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewBadRequest("the patch makes it no Scale any more")
		}
		return s, nameError(c, s)
	})
}

// applyScale applies the number of replicas, as if the object itself were applied
// with nothing but that field.
func (h *Handler) applyScale(c *Call, form form, in intent, options *metav1.PatchOptions, body []byte) error {
	if h.Owner == nil {
		return status.NotAllowed()
	}
	sent := &autoscalingv1.Scale{}
	raw, err := ownership.ReadTree(body)
	if err != nil {
		return err
	}
	data, err := jsoncodec.Append(nil, raw)
	if err != nil {
		return badRequest(err)
	}
	if err := h.decode(c, jsoncodec.Codec{}, data, scaleKind, sent, strictness(options.FieldValidation)); err != nil {
		return err
	}
	if err := nameError(c, sent); err != nil {
		return err
	}
	force := options.Force != nil && *options.Force
	apply := func(obj, old kinds.Object) error {
		merged, err := h.Owner.ApplyScale(c.Resource, c.Sub.Name, objects.Copy(old), body, in.manager, force)
		if err != nil {
			return status.Show(asScale(c, err))
		}
		obj.SetManagedFields(merged.GetManagedFields())
		return nil
	}
	return h.changeScale(c, form, &change{intent: in, own: apply}, func(old *autoscalingv1.Scale, _ *cache.Item) (*autoscalingv1.Scale, error) {
		next := old.DeepCopy()
		next.Spec.Replicas, next.UID = sent.Spec.Replicas, sent.UID
		if sent.ResourceVersion != "" {
			next.ResourceVersion = sent.ResourceVersion
		}
		return next, nil
	})
}

// changeScale runs the update of an object through its Scale.
func (h *Handler) changeScale(c *Call, form form, ch *change, edit func(*autoscalingv1.Scale, *cache.Item) (*autoscalingv1.Scale, error)) error {
	m, own := c.Sub.Scale, ch.own
	ch.quiet = true
	if own == nil && h.Owner != nil {
		own = func(obj, old kinds.Object) error { return h.ownScale(c, obj, old, ch.manager) }
	}
	if own != nil {
		ch.own = func(obj, old kinds.Object) error {
			err := h.inServed(c.Resource, obj, old, own)
			undate(obj, c.Sub.Name)
			return err
		}
	}
	ch.compute = func(old kinds.Object, item *cache.Item) (kinds.Object, error) {
		obj, err := objects.FromStored(c.Resource, objects.Copy(old))
		if err != nil {
			return nil, err
		}
		before := scaleOf(m, obj)
		next, err := edit(before, item)
		if err != nil {
			return nil, err
		}
		next.Namespace = obj.GetNamespace()
		a := h.attributes(c, admission.Update, next, before, ch.intent)
		if err := h.Admission.Admit(c.Context(), a); err != nil {
			return nil, err
		}
		if err := matchNamespace(c, next); err != nil {
			return nil, err
		}
		if !c.Resource.Custom { // what may be the number of those is for their schema to say
			if err := validScale(next); err != nil {
				return nil, err
			}
		}
		if err := h.Admission.Validate(c.Context(), a); err != nil {
			return nil, err
		}
		if next.UID != "" && next.UID != obj.GetUID() {
			return nil, apierrors.NewConflict(
				schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural + "/scale"}, obj.GetName(),
				fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", next.UID, obj.GetUID()))
		}
		m.SetReplicas(obj, next.Spec.Replicas)
		if next.ResourceVersion != "" {
			obj.SetResourceVersion(next.ResourceVersion)
		}
		return objects.ToStored(c.Resource, obj)
	}
	out, err := h.change(c, ch)
	if err != nil {
		return err
	}
	obj, err := objects.FromStored(c.Resource, out.obj)
	if err != nil {
		return err
	}
	if out.item != nil {
		obj.SetResourceVersion(strconv.FormatInt(out.item.Revision, 10))
	}
	return h.Answers.Scale(&c.Request, form, out.code(), scaleOf(m, obj))
}

func validScale(s *autoscalingv1.Scale) error {
	errs := genericvalidation.ValidateObjectMeta(&s.ObjectMeta, true, genericvalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, genericvalidation.ValidateNonnegativeField(int64(s.Spec.Replicas), field.NewPath("spec", "replicas"))...)
	if len(errs) == 0 {
		return nil
	}
	return status.Invalid(scaleKind.GroupKind(), s.Name, errs)
}
