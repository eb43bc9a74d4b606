package policy

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// paramResource returns where the parameters of a policy are; nil where it takes none.
func (r *request) paramResource(h *hook) (*kinds.Resource, error) {
	k := h.params
	if k == nil {
		return nil, nil
	}
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("failed to parse paramKind APIVersion: %w", err)
	}
	gvk := gv.WithKind(k.Kind)
	res := r.Catalogue.LookupKind(gvk)
	if res == nil || res.Storage == nil || res.Off {
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gvk)
	}
	return res, nil
}

// param is one parameter object as expressions see it, or none.
type param struct {
	namespace, name string
	tree            func() (any, error)
}

// params returns the parameters that a binding refers to, as expressions see them. A
// policy that takes none, or is bound without, is evaluated once without any.
func (r *request) params(res *kinds.Resource, ref *admissionregistrationv1.ParamRef) ([]param, error) {
	if res == nil || ref == nil {
		return []param{{}}, nil
	}
	namespace := ""
	if res.Namespaced {
		if namespace = ref.Namespace; namespace == "" {
			namespace = r.a.Namespace
		}
		if namespace == "" {
			return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
		}
	} else if ref.Namespace != "" {
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	items, err := r.find(res, namespace, ref)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	list := make([]param, len(items))
	for i, item := range items {
		list[i] = param{item.Namespace, item.Name, func() (any, error) { return r.paramTree(item, res) }}
	}
	return list, nil
}

// find finds the parameters by name or selector. Those that cannot be read are not
// there.
func (r *request) find(res *kinds.Resource, namespace string, ref *admissionregistrationv1.ParamRef) ([]*cache.Item, error) {
	switch {
	case ref.Name != "" && ref.Selector != nil:
		return nil, errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case ref.Name != "":
		item := r.Cache.Get(res.Storage.Key, namespace, ref.Name)
		if item == nil || item.Err() != nil {
			return nil, nil
		}
		return []*cache.Item{item}, nil
	case ref.Selector == nil:
		return nil, errors.New("one of name or selector must be provided")
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return nil, err
	}
	var items []*cache.Item
	r.Cache.Snapshot(res.Storage.Key).Ascend(namespace, "", "", func(item *cache.Item) bool {
		if item.Err() == nil && selector.Matches(item.Meta().Labels) {
			items = append(items, item)
		}
		return true
	})
	return items, nil
}

// paramTree returns a parameter in the version of a resource, made once an item. A custom one is converted from the version that it
// was stored in; a conversion webhook that failed is called again the next time.
func (r *request) paramTree(item *cache.Item, res *kinds.Resource) (any, error) {
	data, err := r.Objects.JSON(r.ctx, res, item)
	if err != nil {
		return nil, err
	}
	return item.Form(cache.FormKey{Form: cache.FormOther, For: res}, func(*cache.Item) (any, error) {
		obj := res.New()
		if _, err := r.Cache.JSON().Decode(data, obj, codecs.Ignore); err != nil {
			return nil, err
		}
		return criteria.Tree(obj, res.GVK())
	})
}

// namespaceForm is the key of the tree in a namespace's item.
type namespaceForm struct{}

// namespaceTree returns a namespace as expressions see it, made once for each item.
func namespaceTree(codec jsoncodec.Codec, item *cache.Item) (any, error) {
	return item.Form(cache.FormKey{Form: cache.FormOther, For: namespaceForm{}}, func(item *cache.Item) (any, error) {
		ns := &corev1.Namespace{}
		if _, err := codec.Decode(item.JSON(), ns, codecs.Ignore); err != nil {
			return nil, err
		}
		ns.ManagedFields, ns.OwnerReferences = nil, nil
		return criteria.Tree(ns, corev1.SchemeGroupVersion.WithKind("Namespace"))
	})
}
