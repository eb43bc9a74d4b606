package ownership

import (
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/merging"
)

// A write through a scale subresource is a write of a Scale: the owners of the object's
// replicas become the Scale's owners of spec.replicas, and go back when the write is done.
// Entries that come back carry no time, as on a stock server. The library does all of it:
// a Scale is small, and such writes are rare.

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// trackScale computes the managed fields after a write through the scale subresource.
func (m *FieldManager) trackScale(w write, mapping *kinds.ScaleMapping) ([]metav1.ManagedFieldsEntry, error) {
	if err := checkEntries(w.entries); err != nil {
		return nil, err
	}
	entries := m.scaleHandler(w.resource, w.entries)
	live, err := scaleOf(entries, mapping, w.old)
	if err != nil {
		return nil, err
	}
	next := live.DeepCopy()
	next.Spec.Replicas, _ = mapping.Replicas(w.new)
	manager, err := m.scaleManager()
	if err != nil {
		return nil, err
	}
	_, err = manager.Update(live, next, w.manager)
	var after []metav1.ManagedFieldsEntry
	if err == nil {
		after, err = entries.ToParent(next.ManagedFields)
	}
	if err != nil {
		return nil, fmt.Errorf("tracking replicas of %v %s/%s: %w", w.resource.GVK(), w.new.GetNamespace(), w.new.GetName(), err)
	}
	return after, nil
}

// ApplyScale merges a server-side apply patch of an autoscaling/v1 Scale into that of live, an object of r's
// version. It returns the Scale, and the managed fields of the object. live is not changed. Errors are those
// of Apply.
func (m *FieldManager) ApplyScale(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool) (*autoscalingv1.Scale, []metav1.ManagedFieldsEntry, error) {
	s := r.Sub(sub)
	if s == nil || s.Scale == nil {
		return nil, nil, fmt.Errorf("%v has no scale %q", r.GVK(), sub)
	}
	tree, err := ReadTree(patch)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFields(tree); err != nil {
		return nil, nil, err
	}
	if err := checkEntries(live.GetManagedFields()); err != nil {
		return nil, nil, err
	}
	entries := m.scaleHandler(r, live.GetManagedFields())
	current, err := scaleOf(entries, s.Scale, live)
	if err != nil {
		return nil, nil, err
	}
	merger, err := m.scaleManager()
	if err != nil {
		return nil, nil, err
	}
	result, err := merger.Apply(current, &unstructured.Unstructured{Object: tree}, manager, force)
	if err != nil {
		return nil, nil, err
	}
	scale, ok := result.(*autoscalingv1.Scale)
	if !ok {
		return nil, nil, fmt.Errorf("apply made a %T of a scale", result)
	}
	owners, err := entries.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, nil, err
	}
	return scale, owners, nil
}

// scaleHandler maps entries between an object and its Scale, in every version.
func (m *FieldManager) scaleHandler(r *kinds.Resource, entries []metav1.ManagedFieldsEntry) *managedfields.ScaleHandler {
	paths := map[string][]string{}
	for _, other := range m.schemas.Catalogue().All() {
		if other.Storage == nil || other.Storage.Key != r.Storage.Key {
			continue
		}
		var path []string
		for i := range other.Subresources {
			if mapping := other.Subresources[i].Scale; mapping != nil {
				path = append(path, mapping.ReplicasPath...)
			}
		}
		paths[other.APIVersion()] = path
	}
	return managedfields.NewScaleHandler(entries, r.GVK().GroupVersion(), merging.Paths(paths))
}

// scaleOf returns the Scale of an object, with the entries that are about its replicas.
func scaleOf(entries *managedfields.ScaleHandler, mapping *kinds.ScaleMapping, obj kinds.Object) (*autoscalingv1.Scale, error) {
	own, err := entries.ToSubresource()
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(), ManagedFields: own,
	}}
	s.SetGroupVersionKind(scaleKind)
	s.Spec.Replicas, s.Status.Replicas = mapping.Replicas(obj)
	s.Status.Selector = mapping.Selector(obj)
	return s, nil
}

// scaleManager returns the field manager of the library for a Scale.
func (m *FieldManager) scaleManager() (*managedfields.FieldManager, error) {
	t := scaleTypes{m.schemas}
	return merging.NewFieldManager(merging.Kind{
		Converter: m.schemas.ConverterAs(reflect.TypeFor[autoscalingv1.Scale]()), Convertor: t, Defaulter: t, Creater: t,
		Kind: scaleKind, Subresource: "scale",
	})
}

// scaleTypes describes the only version of Scale to the merge library.
type scaleTypes struct{ schemas *schema.Schemas }

func (t scaleTypes) New(apischema.GroupVersionKind) (runtime.Object, error) {
	s := &autoscalingv1.Scale{}
	s.SetGroupVersionKind(scaleKind)
	return s, nil
}

func (t scaleTypes) Default(runtime.Object) {}

func (t scaleTypes) Convert(in, out, context any) error {
	return converter{schemas: t.schemas}.Convert(in, out, context)
}

func (t scaleTypes) ConvertFieldLabel(gvk apischema.GroupVersionKind, label, value string) (string, string, error) {
	return converter{schemas: t.schemas}.ConvertFieldLabel(gvk, label, value)
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
