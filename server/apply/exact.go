package apply

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

// exact does the bookkeeping with the merge library of apimachinery. It handles
// every case; the plans handle the frequent ones faster.
type exact struct {
	schemas  *schema.Schemas
	managers sync.Map // endpoint -> *managedfields.FieldManager
}

type endpoint struct {
	r   *kinds.Resource
	sub string
}

func (x *exact) manager(r *kinds.Resource, sub string) (*managedfields.FieldManager, error) {
	key := endpoint{r, sub}
	if m, ok := x.managers.Load(key); ok {
		return m.(*managedfields.FieldManager), nil
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if paths := resetFields(r, sub); len(paths) > 0 {
		set := fieldpath.NewSet()
		for _, p := range paths {
			set.Insert(dotted(p))
		}
		reset[fieldpath.APIVersion(r.APIVersion())] = fieldpath.NewExcludeSetFilter(set)
	}
	build := managedfields.NewDefaultFieldManager
	if r.Custom {
		build = managedfields.NewDefaultCRDFieldManager
	}
	v := versions{x.schemas}
	m, err := build(x.schemas, v, v, v, r.GVK(), r.GVK().GroupVersion(), sub, reset)
	if err != nil {
		return nil, fmt.Errorf("field manager of %v: %w", r.GVK(), err)
	}
	if !r.Custom {
		x.managers.Store(key, m) // the resources of custom kinds come and go
	}
	return m, nil
}

func dotted(path string) fieldpath.Path {
	var out fieldpath.Path
	for _, name := range strings.Split(path, ".") {
		out = append(out, fieldpath.PathElement{FieldName: &name})
	}
	return out
}

// update sets obj's managed fields. obj comes with the entries to start from.
func (x *exact) update(r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) error {
	for _, o := range []kinds.Object{old, obj} {
		if err := crowded(o); err != nil {
			return err
		}
		if err := overowned(o.GetManagedFields()); err != nil {
			return err
		}
	}
	m, err := x.manager(r, sub)
	if err != nil {
		return err
	}
	if !r.Custom { // those say themselves what they are, and are held to it later
		old.GetObjectKind().SetGroupVersionKind(r.GVK())
		obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	}
	before := obj.GetManagedFields()
	// The library takes a subresource's entries from the live object.
	live := old
	if sub != "" && !reflect.DeepEqual(old.GetManagedFields(), before) {
		live = old.DeepCopyObject().(kinds.Object)
		live.SetManagedFields(before)
	}
	if _, err := m.Update(live, obj, manager); err != nil {
		return fmt.Errorf("tracking fields of %v %s/%s: %w", r.GVK(), obj.GetNamespace(), obj.GetName(), err)
	}
	after := obj.GetManagedFields()
	stamp(before, after, now)
	obj.SetManagedFields(after)
	return nil
}

// Apply merges a server-side apply patch (YAML or JSON) into live, or into nothing
// where live is nil, and records manager as the owner of what it applied. The result
// is neither defaulted nor validated; live is not changed.
//
// Errors: 400 for a patch that is no object of r's kind; 409 with one cause a field
// for fields that others own, unless force is set; plain errors, 500 to clients, for
// fields the kind does not have.
func (o *Ownership) Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool, now time.Time) (kinds.Object, error) {
	tree, err := ReadTree(patch)
	if err != nil {
		return nil, err
	}
	if err := crowded(tree); err != nil {
		return nil, err
	}
	if err := crowded(live); err != nil {
		return nil, err
	}
	wanted := &unstructured.Unstructured{Object: tree}
	m, err := o.exact.manager(r, sub)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = r.New()
	}
	if err := overowned(live.GetManagedFields()); err != nil {
		return nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(r.GVK())
	before := live.GetManagedFields()
	result, err := m.Apply(live, wanted, manager, force)
	if err != nil {
		return nil, err
	}
	obj, ok := result.(kinds.Object)
	if !ok {
		return nil, fmt.Errorf("apply made a %T of %v", result, r.GVK())
	}
	after := obj.GetManagedFields()
	stamp(before, after, now)
	obj.SetManagedFields(after)
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return obj, nil
}

// ApplyProblems finds duplicate fields in the YAML of an apply patch, which a stock
// server looks for after the patch was merged: warnings under codecs.Warn, a 400
// under codecs.Strict.
func ApplyProblems(patch []byte, s codecs.Strictness) ([]string, error) {
	if s == codecs.Ignore {
		return nil, nil
	}
	if (jsoncodec.Codec{}).DecodeClean(patch, &unstructured.Unstructured{}) {
		return nil, nil // JSON without a repeated name: most patches, and much faster
	}
	err := yaml.UnmarshalStrict(patch, &map[string]any{})
	if err == nil {
		return nil, nil
	}
	if s == codecs.Strict {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
	}
	return []string{err.Error()}, nil
}

// versions converts between the versions of a kind for the merge library.
type versions struct{ schemas *schema.Schemas }

// New makes an empty object.
func (v versions) New(kind apischema.GroupVersionKind) (runtime.Object, error) {
	r := v.schemas.Catalogue().LookupKind(kind)
	if r == nil || r.New == nil {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", kind)
	}
	obj := r.New()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// Default does nothing: defaults belong to the verbs.
func (v versions) Default(runtime.Object) {}

// Convert is not needed by the library.
func (v versions) Convert(in, out, context any) error {
	return fmt.Errorf("cannot convert %T to %T", in, out)
}

// ConvertFieldLabel is not needed by the library.
func (v versions) ConvertFieldLabel(gvk apischema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// ConvertToVersion makes in an object of target's version, of the Go type of its
// kind. in is not changed.
func (v versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]apischema.GroupVersionKind{gvk})
	if gv, is := target.(apischema.GroupVersion); is {
		to, ok = gv.WithKind(gvk.Kind), true
	}
	if !ok {
		return nil, fmt.Errorf("%v cannot be converted to %v", gvk, target)
	}
	from := v.schemas.Catalogue().LookupKind(gvk)
	if from == nil || from.New == nil {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", gvk)
	}
	obj, err := v.typed(from, in)
	if err != nil || to == gvk {
		return obj, err
	}
	dest := v.schemas.Catalogue().LookupKind(to)
	if dest == nil || dest.New == nil || dest.Storage == nil || from.Storage == nil || dest.Storage.Key != from.Storage.Key {
		return nil, runtime.NewNotRegisteredErrForKind("the catalogue", to)
	}
	return kinds.ConvertAll(obj.DeepCopyObject().(kinds.Object), from, dest)
}

// typed turns the unstructured results of a merge into the kind's Go type.
func (v versions) typed(r *kinds.Resource, in runtime.Object) (kinds.Object, error) {
	u, isTree := in.(*unstructured.Unstructured)
	if !isTree || r.Custom {
		return in.(kinds.Object), nil
	}
	obj := r.New()
	if err := quantities.CheckTree(u.Object, reflect.TypeOf(obj)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return obj, nil
}

var _ managedfields.TypeConverter = (*schema.Schemas)(nil)
