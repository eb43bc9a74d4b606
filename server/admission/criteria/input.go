package criteria

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
)

// Input holds the variables of expressions for a write in the version of a target: all but parameters, the
// namespace and the authorizer.
func (t Target) Input(a *admission.Attributes) *expr.Input {
	show := func(obj runtime.Object) func() (any, error) {
		if obj == nil {
			return nil
		}
		return func() (any, error) { return t.tree(a, obj) }
	}
	return &expr.Input{
		Object: show(a.Object), OldObject: show(a.Old),
		Request: func() (any, error) { return t.request(a) },
	}
}

// tree returns an object as JSON decodes it.
func (t Target) tree(a *admission.Attributes, obj runtime.Object) (any, error) {
	shown, err := t.convert(a, obj)
	if err != nil {
		return nil, err
	}
	return Tree(shown, t.Kind)
}

// Tree returns an object as JSON decodes it, of a kind. It must not be changed.
func Tree(obj runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok && obj.GetObjectKind().GroupVersionKind() == kind {
		return u.UnstructuredContent(), nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	return tree, nil
}

// request returns the variable request. Empty fields are absent.
func (t Target) request(a *admission.Attributes) (any, error) {
	own := Kind(a.Resource, a.Subresource)
	r := map[string]any{
		"kind": gvk(t.Kind), "resource": gvr(t.Resource),
		"requestKind": gvk(own), "requestResource": gvr(a.Resource),
		"operation": string(a.Operation), "dryRun": a.DryRun,
	}
	for name, value := range map[string]string{
		"name": a.Name, "namespace": a.Namespace, "subResource": a.Subresource, "requestSubResource": a.Subresource,
	} {
		if value != "" {
			r[name] = value
		}
	}
	user := map[string]any{}
	if u := a.User; u != nil {
		if u.Name != "" {
			user["username"] = u.Name
		}
		if u.UID != "" {
			user["uid"] = u.UID
		}
		if len(u.Groups) > 0 {
			user["groups"] = u.Groups
		}
		if len(u.Extra) > 0 {
			user["extra"] = u.Extra
		}
	}
	r["userInfo"] = user
	if a.Options != nil {
		options, err := Tree(a.Options, a.Options.GetObjectKind().GroupVersionKind())
		if err != nil {
			return nil, err
		}
		r["options"] = options
	}
	return r, nil
}

func gvk(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func gvr(r *kinds.Resource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Plural}
}
