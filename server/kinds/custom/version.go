package custom

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// Version is one version of a definition. It is the kinds.Schema of its resource.
type Version struct {
	of    *Definition
	spec  *apiextensionsv1.CustomResourceDefinitionVersion
	gvk   schema.GroupVersionKind
	since int64 // objects stored later are clean

	compiled
}

// tree returns the content of an object. All objects in the storage of a custom resource are unstructured.
func tree(obj kinds.Object) map[string]any { return obj.(*unstructured.Unstructured).Object }

// Coerce implements kinds.Schema. A body may be of another version, with a schema of its own
// or without one, and of another kind, which is known only to have metadata.
func (v *Version) Coerce(obj kinds.Object) (unknown []string, err error) {
	of := obj.GetObjectKind().GroupVersionKind()
	if of == v.gvk {
		return v.Schema().Coerce(tree(obj))
	}
	if of.GroupKind() == v.gvk.GroupKind() {
		if other := v.of.versions[of.Version]; other != nil {
			return other.Schema().Coerce(tree(obj))
		}
	}
	unknown, err = structural.CoerceMeta(v.of.release, tree(obj))
	if err == nil && of.GroupKind() == v.gvk.GroupKind() {
		unknown = append(unknown, dropAll(tree(obj))...)
	}
	return unknown, err
}

// Settled implements kinds.Schema.
func (v *Version) Settled(obj kinds.Object) bool {
	return obj.GetObjectKind().GroupVersionKind() == v.gvk && v.Schema().Settled(tree(obj))
}

// dropAll leaves only the fields that every version has in an object, and returns the names of the others.
func dropAll(obj map[string]any) (dropped []string) {
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		switch name {
		case "apiVersion", "kind", "metadata":
		default:
			dropped = append(dropped, name)
			delete(obj, name)
		}
	}
	return dropped
}

// CoerceMerged implements kinds.Schema.
func (v *Version) CoerceMerged(obj kinds.Object) error { return v.Schema().CoerceMerged(tree(obj)) }

// Clean implements kinds.Schema.
func (v *Version) Clean(revision int64) bool { return revision > v.since }

// CallsWebhook implements kinds.Schema.
func (v *Version) CallsWebhook() bool { return v.of.converter != nil }

// FromStore implements kinds.Schema. The schema of an object's own version is applied first, then it is
// converted, then this version's schema is applied; only the former sets defaults.
func (v *Version) FromStore(ctx context.Context, objs ...kinds.Object) ([]kinds.Object, error) {
	for _, obj := range objs {
		own := v.of.versions[obj.(*unstructured.Unstructured).GroupVersionKind().Version]
		if own == nil {
			own = v // the version no longer exists
		}
		if err := own.fit(obj); err != nil {
			return nil, err
		}
	}
	return v.from(ctx, objs)
}

// ToStore implements kinds.Schema.
func (v *Version) ToStore(ctx context.Context, obj kinds.Object) (kinds.Object, error) {
	to := v.of.storage
	if v == to {
		return obj, nil
	}
	out, err := to.convert(ctx, []kinds.Object{obj.DeepCopyObject().(kinds.Object)})
	if err != nil {
		return nil, err
	}
	return out[0], to.fit(out[0])
}

// fit applies the effects of reading an object from the store.
func (v *Version) fit(obj kinds.Object) error {
	if err := v.Schema().CoerceStored(tree(obj)); err != nil {
		return err
	}
	v.Schema().Default(tree(obj))
	return nil
}

// from converts stored objects, and drops fields that the version does not have.
func (v *Version) from(ctx context.Context, objs []kinds.Object) ([]kinds.Object, error) {
	other := make([]bool, len(objs))
	for i, obj := range objs {
		other[i] = !v.is(obj)
	}
	objs, err := v.convert(ctx, objs)
	if err != nil {
		return nil, err
	}
	for i, obj := range objs {
		if other[i] {
			if err := v.Schema().CoerceStored(tree(obj)); err != nil {
				return nil, err
			}
		}
	}
	return objs, nil
}

// is reports whether an object is of this version.
func (v *Version) is(obj kinds.Object) bool {
	return obj.(*unstructured.Unstructured).GetAPIVersion() == v.gvk.GroupVersion().String()
}

// convert makes objects of this version of those that are of another one.
func (v *Version) convert(ctx context.Context, objs []kinds.Object) ([]kinds.Object, error) {
	var others []*unstructured.Unstructured
	var at []int
	for i, obj := range objs {
		if !v.is(obj) {
			others, at = append(others, obj.(*unstructured.Unstructured)), append(at, i)
		}
	}
	if len(others) == 0 {
		return objs, nil
	}
	if v.of.converter == nil {
		for _, u := range others {
			u.SetAPIVersion(v.gvk.GroupVersion().String())
		}
		return objs, nil
	}
	made, err := v.of.converter.Convert(ctx, v.gvk.GroupVersion(), others)
	if err != nil {
		return nil, err
	}
	for k, u := range made {
		objs[at[k]] = u
	}
	return objs, nil
}

// to converts objects of this version to another one.
func (v *Version) to(other *Version) func(kinds.Object) (kinds.Object, error) {
	return func(obj kinds.Object) (kinds.Object, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%T is no custom object", obj)
		}
		u.SetAPIVersion(v.gvk.GroupVersion().String())
		out, err := other.convert(context.Background(), []kinds.Object{u})
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
}
