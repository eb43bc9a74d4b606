package kinds

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object takes three forms on its way between a client and the store.
//
//	stored    the content of the bytes in the table
//	working   the form for strategies, admission and allocators
//	served    the form that a client of this resource sends and gets
//
// For a built-in kind the working form is the stored version, and ToServed and ToWorking convert.
// For a custom kind the working form is the served version, and Load and Save do it. Code that
// calls all four in their places serves either kind.

// Schema lets objects in and out of the store. Built-in kinds need none: they keep
// AsStored.
type Schema interface {
	// Coerce drops the fields of a client's object that the version does not have, and returns their paths.
	// Errors concern invalid metadata.
	Coerce(obj Object) (unknown []string, err error)
	// Settled reports that Coerce removes no field of a client's object outside of metadata, and that defaults add none. It may
	// return false even so.
	Settled(obj Object) bool
	// CoerceMerged is Coerce for the result of an apply, whose nulls validation checks.
	CoerceMerged(obj Object) error
	// Clean reports whether bytes stored at a revision are, unchanged, an object of this version.
	Clean(revision int64) bool
	// FromStore converts stored objects, of any version, to this version; it may change them. ToStore makes
	// the stored form, of another object if it converts.
	FromStore(ctx context.Context, objs ...Object) ([]Object, error)
	ToStore(ctx context.Context, obj Object) (Object, error)
	// Ready waits until the parts of the schema that a user's write needs are available.
	Ready(ctx context.Context, user string) error
	// CallsWebhook reports whether a webhook converts objects, which takes time and may change labels.
	CallsWebhook() bool
}

// AsStored is the schema of objects that are stored as they are worked on: it changes
// nothing.
type AsStored struct{}

// Coerce implements Schema.
func (AsStored) Coerce(Object) ([]string, error) { return nil, nil }

// Settled implements Schema.
func (AsStored) Settled(Object) bool { return false }

// CoerceMerged implements Schema.
func (AsStored) CoerceMerged(Object) error { return nil }

// Clean implements Schema.
func (AsStored) Clean(int64) bool { return true }

// FromStore implements Schema.
func (AsStored) FromStore(_ context.Context, objs ...Object) ([]Object, error) { return objs, nil }

// ToStore implements Schema.
func (AsStored) ToStore(_ context.Context, obj Object) (Object, error) { return obj, nil }

// Ready implements Schema.
func (AsStored) Ready(context.Context, string) error { return nil }

// CallsWebhook implements Schema.
func (AsStored) CallsWebhook() bool { return false }

func (r *Resource) schema() Schema {
	if r.Schema == nil {
		return AsStored{}
	}
	return r.Schema
}

// Ready waits until the parts of the schema that a write needs are available; see Schema.
func (r *Resource) Ready(ctx context.Context, user string) error {
	if r.Schema == nil {
		return nil
	}
	return r.Schema.Ready(ctx, user)
}

// Coerce drops the fields of a client's object that the version does not have; see Schema.
func (r *Resource) Coerce(obj Object) (unknown []string, err error) { return r.schema().Coerce(obj) }

// Settled reports that Coerce removes no field outside of metadata, and that defaults add none; see Schema.
func (r *Resource) Settled(obj Object) bool { return r.schema().Settled(obj) }

// CoerceMerged is Coerce for the result of an apply; see Schema.
func (r *Resource) CoerceMerged(obj Object) error { return r.schema().CoerceMerged(obj) }

// Clean reports whether bytes stored at a revision are, unchanged, an object of this version. older means that
// they may have been written before that revision, as the last state of a deleted object.
func (r *Resource) Clean(revision int64, older bool) bool {
	if r.custom() {
		return !older && r.schema().Clean(revision)
	}
	return r.FromStorage == nil
}

// NewStored makes an empty object for stored bytes to be decoded into.
func (r *Resource) NewStored() Object {
	if s := r.Storage; s != nil && s.New != nil {
		return s.New()
	}
	return r.New()
}

// Load makes working forms of stored ones, which it may change.
func (r *Resource) Load(ctx context.Context, objs ...Object) ([]Object, error) {
	return r.schema().FromStore(ctx, objs...)
}

// AsStored removes fields from a working form that would be lost if it were stored. Answers to dry runs lack
// them too.
func (r *Resource) AsStored(obj Object) {
	if !r.Storage.KeepEmpty {
		DropEmpty(obj)
	}
}

// Save makes the stored form of a working one, which it may change unless it returns another. The caller
// first removes the resourceVersion, which is not stored.
func (r *Resource) Save(ctx context.Context, obj Object) (Object, error) {
	r.AsStored(obj)
	if r.custom() {
		var err error
		if obj, err = r.schema().ToStore(ctx, obj); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	return obj, nil
}

// ToWorking makes the working form of a served one, which it may change.
func (r *Resource) ToWorking(obj Object) (Object, error) {
	if r.ToStorage == nil || r.WorksAsServed() {
		return obj, nil
	}
	out, err := r.ToStorage(obj)
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	return out, nil
}

// SetDefaults sets the defaults of a working form that a client sent.
func (r *Resource) SetDefaults(obj Object) {
	fill := r.Storage.Default
	if r.Default != nil {
		fill = r.Default
	}
	if fill != nil {
		fill(obj)
	}
}

// ToServed makes the served form of a working one, which it may change.
func (r *Resource) ToServed(obj Object) (Object, error) {
	if !r.Converts() {
		return obj, nil
	}
	out, err := r.FromStorage(obj)
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", r.GVK(), err)
	}
	out.GetObjectKind().SetGroupVersionKind(r.GVK())
	return out, nil
}

// WorksAsServed reports whether the working form is the served one by design, and not because
// the stored version is requested.
func (r *Resource) WorksAsServed() bool { return r.custom() }

// Converts reports whether the served form differs from the working one.
func (r *Resource) Converts() bool { return r.FromStorage != nil && !r.WorksAsServed() }

// LoadMayFail reports whether Load can fail for reasons that may pass, so that a failure
// must not be kept.
func (r *Resource) LoadMayFail() bool { return r.custom() }

// LoadCallsWebhook reports whether Load may call a webhook, which takes time, may fail temporarily, and may
// change labels.
func (r *Resource) LoadCallsWebhook() bool { return r.schema().CallsWebhook() }

// AsServed returns the resource for objects whose bytes are the served form already.
func (r *Resource) AsServed() *Resource {
	as := *r
	as.FromStorage = nil
	if as.custom() {
		as.Schema = AsStored{}
	}
	return &as
}

// HasGoType reports whether objects are decoded into a struct. Others are trees of maps and
// lists, which only a schema describes.
func (r *Resource) HasGoType() bool { return !r.custom() && r.New != nil }

// GoType returns the struct that objects are decoded into, or nil.
func (r *Resource) GoType() reflect.Type {
	if !r.HasGoType() {
		return nil
	}
	return reflect.TypeOf(r.New()).Elem()
}

// Blank returns an empty object of the served version, with the annotations if they are not nil; bookmarks of a
// watch have one.
func (r *Resource) Blank(annotations map[string]string) runtime.Object {
	if r.custom() {
		metadata := map[string]any{}
		if annotations != nil {
			tree := make(map[string]any, len(annotations))
			for k, v := range annotations {
				tree[k] = v
			}
			metadata["annotations"] = tree
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.APIVersion(), "kind": r.Kind, "metadata": metadata}}
	}
	obj := r.New()
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	obj.SetAnnotations(annotations)
	if r.Zero != nil {
		r.Zero(obj)
	}
	return obj
}

// ErrorKind returns the kind of an object in errors: for a custom one the kind that it states, which may be wrong.
func (r *Resource) ErrorKind(obj Object) schema.GroupKind {
	if gk := obj.GetObjectKind().GroupVersionKind().GroupKind(); r.custom() && gk.Kind != "" {
		return gk
	}
	return r.Storage.GVK.GroupKind()
}

// Convert converts an object of resource from to resource to, where both have one storage. The argument may
// be changed. It keeps fields that the version does not have.
func Convert(obj Object, from, to *Resource) (Object, error) {
	var err error
	if from.ToStorage != nil {
		if obj, err = from.ToStorage(obj); err != nil {
			return nil, err
		}
	}
	if to.FromStorage != nil {
		if obj, err = to.FromStorage(obj); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(to.GVK())
	return obj, nil
}
