package ownership

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

// converter provides the library with the remaining facts about kinds: it makes objects, and converts
// them between the versions of their kinds.
type converter struct {
	schemas *schema.Schemas
	emptied *emptied // fields that become null in the tree of an apply; nil: none
}

// New makes an empty object.
func (c converter) New(kind apischema.GroupVersionKind) (runtime.Object, error) {
	r := c.schemas.Catalogue().LookupKind(kind)
	if r == nil || r.New == nil {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", kind)
	}
	obj := r.New()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// Default does nothing: defaults belong to the write that an apply is a part of.
func (c converter) Default(runtime.Object) {}

// Convert is not needed by the library.
func (c converter) Convert(in, out, context any) error {
	return fmt.Errorf("cannot convert %T to %T", in, out)
}

// ConvertFieldLabel is not needed by the library.
func (c converter) ConvertFieldLabel(gvk apischema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// ConvertToVersion makes in an object of target's version, of the Go type of its
// kind. in is not changed.
func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]apischema.GroupVersionKind{gvk})
	if gv, is := target.(apischema.GroupVersion); is {
		to, ok = gv.WithKind(gvk.Kind), true
	}
	if !ok {
		return nil, fmt.Errorf("%v cannot be converted to %v", gvk, target)
	}
	if _, isTree := in.(*unstructured.Unstructured); !isTree && to == gvk {
		return in, nil // the catalogue has no bodies of subresources
	}
	from := c.schemas.Catalogue().LookupKind(gvk)
	if from == nil || from.New == nil {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", gvk)
	}
	obj, err := c.object(from, in)
	if err != nil || to == gvk {
		return obj, err
	}
	dest := c.schemas.Catalogue().LookupKind(to)
	// Of Events, which two groups have, a stock server forgets the entries of the other group.
	if dest == nil || dest.New == nil || dest.Storage == nil || from.Storage == nil || dest.Storage.Key != from.Storage.Key || dest.Group != from.Group {
		if !from.HasGoType() {
			// The library drops entries of unknown versions. A stock server does not count versions of custom
			// resources among them: the client gets an error.
			return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to.GroupVersion())
		}
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", to)
	}
	return kinds.Convert(obj.DeepCopyObject().(kinds.Object), from, dest)
}

// object turns the tree that a merge results in into the kind's Go type.
func (c converter) object(r *kinds.Resource, in runtime.Object) (kinds.Object, error) {
	u, isTree := in.(*unstructured.Unstructured)
	if isTree && c.emptied != nil {
		if err := c.emptied.null(u); err != nil {
			return nil, err
		}
	}
	if !isTree || !r.HasGoType() {
		return in.(kinds.Object), nil
	}
	obj := r.New()
	if err := quantities.CheckTree(u.Object, reflect.TypeOf(obj)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, fmt.Errorf("unable to convert unstructured object to %v: %w", r.GVK(), err)
	}
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return obj, nil
}
