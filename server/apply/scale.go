package apply

import (
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// A write through a scale subresource is a write of a Scale: the parent's owners of
// its replicas are the Scale's owners of spec.replicas, and go back when it is done.
// Entries that come back carry no time, as on a stock server.

// scaleUpdate sets the managed fields of obj, which differs from old in its replicas.
func (o *Ownership) scaleUpdate(r *kinds.Resource, m *kinds.ScaleMapping, old, obj kinds.Object, manager string) error {
	if err := overowned(obj.GetManagedFields()); err != nil {
		obj.SetManagedFields(nil)
		return err
	}
	h := o.scaleHandler(r, obj.GetManagedFields())
	live, err := scaleView(h, m, old)
	if err != nil {
		obj.SetManagedFields(nil)
		return err
	}
	next := live.DeepCopy()
	next.Spec.Replicas, _ = m.Replicas(obj)
	fm, err := o.scaleManager()
	if err != nil {
		return err
	}
	if _, err = fm.Update(live, next, manager); err == nil {
		err = backToParent(h, next.ManagedFields, obj)
	}
	if err != nil {
		obj.SetManagedFields(nil)
		return fmt.Errorf("tracking replicas of %v %s/%s: %w", r.GVK(), obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// ApplyScale merges a server-side apply patch of an autoscaling/v1 Scale into live,
// an object of r's version, and returns it with its replicas and managed fields as
// they are then. live is not changed. Errors are those of Apply.
func (o *Ownership) ApplyScale(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool) (kinds.Object, error) {
	s := r.Sub(sub)
	if s == nil || s.Scale == nil {
		return nil, fmt.Errorf("%v has no scale %q", r.GVK(), sub)
	}
	tree, err := ReadTree(patch)
	if err != nil {
		return nil, err
	}
	if err := overowned(live.GetManagedFields()); err != nil {
		return nil, err
	}
	wanted := &unstructured.Unstructured{Object: tree}
	h := o.scaleHandler(r, live.GetManagedFields())
	view, err := scaleView(h, s.Scale, live)
	if err != nil {
		return nil, err
	}
	fm, err := o.scaleManager()
	if err != nil {
		return nil, err
	}
	result, err := fm.Apply(view, wanted, manager, force)
	if err != nil {
		return nil, err
	}
	scale, ok := result.(*autoscalingv1.Scale)
	if !ok {
		return nil, fmt.Errorf("apply made a %T of a scale", result)
	}
	obj := live.DeepCopyObject().(kinds.Object)
	s.Scale.SetReplicas(obj, scale.Spec.Replicas)
	return obj, backToParent(h, scale.ManagedFields, obj)
}

// scaleHandler maps entries between an object and its Scale, in every version.
func (o *Ownership) scaleHandler(r *kinds.Resource, entries []metav1.ManagedFieldsEntry) *managedfields.ScaleHandler {
	paths := managedfields.ResourcePathMappings{}
	for _, other := range o.schemas.Catalogue().All() {
		if other.Storage == nil || other.Storage.Key != r.Storage.Key {
			continue
		}
		var path fieldpath.Path
		for i := range other.Subresources {
			if m := other.Subresources[i].Scale; m != nil {
				for j := range m.ReplicasPath {
					path = append(path, fieldpath.PathElement{FieldName: &m.ReplicasPath[j]})
				}
			}
		}
		paths[other.APIVersion()] = path
	}
	return managedfields.NewScaleHandler(entries, r.GVK().GroupVersion(), paths)
}

func scaleView(h *managedfields.ScaleHandler, m *kinds.ScaleMapping, obj kinds.Object) (*autoscalingv1.Scale, error) {
	entries, err := h.ToSubresource()
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(), ManagedFields: entries,
	}}
	s.SetGroupVersionKind(scaleKind)
	s.Spec.Replicas, s.Status.Replicas = m.Replicas(obj)
	s.Status.Selector = m.Selector(obj)
	return s, nil
}

func backToParent(h *managedfields.ScaleHandler, entries []metav1.ManagedFieldsEntry, obj kinds.Object) error {
	parent, err := h.ToParent(entries)
	if err == nil {
		obj.SetManagedFields(parent)
	}
	return err
}

func (o *Ownership) scaleManager() (*managedfields.FieldManager, error) {
	t := scaleTypes{o.schemas}
	return managedfields.NewDefaultFieldManager(t, t, t, t, scaleKind, scaleKind.GroupVersion(), "scale", nil)
}

// scaleTypes is what the merge library must know of the one version of Scale.
type scaleTypes struct{ schemas *schema.Schemas }

func (t scaleTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return t.schemas.Typed(reflect.TypeFor[autoscalingv1.Scale](), obj, opts...)
}

func (t scaleTypes) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return t.schemas.TypedToObject(v)
}

func (t scaleTypes) New(apischema.GroupVersionKind) (runtime.Object, error) {
	s := &autoscalingv1.Scale{}
	s.SetGroupVersionKind(scaleKind)
	return s, nil
}

func (t scaleTypes) Default(runtime.Object) {}

func (t scaleTypes) Convert(in, out, context any) error { return versions(t).Convert(in, out, context) }

func (t scaleTypes) ConvertFieldLabel(gvk apischema.GroupVersionKind, label, value string) (string, string, error) {
	return versions(t).ConvertFieldLabel(gvk, label, value)
}

func (t scaleTypes) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if gv, ok := target.(apischema.GroupVersion); ok && gv != scaleKind.GroupVersion() {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", gv.WithKind(scaleKind.Kind))
	}
	u, isTree := in.(*unstructured.Unstructured)
	if !isTree {
		return in, nil
	}
	s := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		return nil, err
	}
	s.SetGroupVersionKind(scaleKind)
	return s, nil
}
