package criteria

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// Equivalents finds resources that are the same objects in other versions, or under another name.
type Equivalents struct {
	catalogue *kinds.Catalogue
	known     atomic.Pointer[families]
}

type families struct {
	generation uint64
	of         map[string][]*kinds.Resource // by storage, where there are several
}

// NewEquivalents makes the Equivalents of a catalogue, which it follows.
func NewEquivalents(c *kinds.Catalogue) *Equivalents { return &Equivalents{catalogue: c} }

// Of lists the resources that are served from r's storage, but for r itself.
func (k *Equivalents) Of(r *kinds.Resource) []*kinds.Resource {
	if r.Storage == nil {
		return nil
	}
	all, generation := k.catalogue.Snapshot()
	f := k.known.Load()
	if f == nil || f.generation != generation {
		f = familiesOf(all, generation)
		k.known.Store(f)
	}
	family := f.of[r.Storage.Key]
	if len(family) == 0 {
		return nil
	}
	others := make([]*kinds.Resource, 0, len(family))
	for _, o := range family {
		if o.GVR() != r.GVR() {
			others = append(others, o)
		}
	}
	return others
}

func familiesOf(all []*kinds.Resource, generation uint64) *families {
	f := &families{generation: generation, of: map[string][]*kinds.Resource{}}
	for _, r := range all {
		if r.Storage != nil {
			f.of[r.Storage.Key] = append(f.of[r.Storage.Key], r)
		}
	}
	for key, list := range f.of {
		if len(list) < 2 {
			delete(f.of, key)
		}
	}
	return f
}

// Target is the resource as which a write is shown, and the kind of its body.
type Target struct {
	Resource *kinds.Resource
	Kind     schema.GroupVersionKind
}

// Kind returns the kind of the body of a resource, or of one of its subresources.
func Kind(r *kinds.Resource, sub string) schema.GroupVersionKind {
	gvk := r.GVK()
	if sub == "" {
		return gvk
	}
	if s := r.Sub(sub); s != nil && s.Kind != "" {
		gvk.Kind = s.Kind
		if s.Version != "" {
			gvk.Group, gvk.Version = s.Group, s.Version
		}
	}
	return gvk
}

// Whole reports whether the body of a write is the stored object, and not a kind of its
// different kind, such as a Scale.
func Whole(a *admission.Attributes) bool {
	return a.Subresource == "" || Kind(a.Resource, a.Subresource) == a.Resource.GVK()
}

// Show returns an object of a write in the version of the target. The caller must not change it; it is nil if there is no
// object.
func (t Target) Show(a *admission.Attributes, obj runtime.Object) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	shown, err := t.convert(a, obj)
	if err != nil || shown.GetObjectKind().GroupVersionKind() == t.Kind {
		return shown, err
	}
	if shown == obj {
		shown = obj.DeepCopyObject()
	}
	shown.GetObjectKind().SetGroupVersionKind(t.Kind)
	return shown, nil
}

// convert converts an object of a write to the target's version. It returns the object itself if that is its
// version already.
func (t Target) convert(a *admission.Attributes, obj runtime.Object) (runtime.Object, error) {
	whole, ok := obj.(kinds.Object)
	if !ok || !Whole(a) {
		return obj, nil
	}
	out, err := through(whole, held(a), t.Resource.FromStorage, t.Resource)
	if err != nil {
		return nil, fmt.Errorf("unable to convert to %v: %w", t.Kind, err)
	}
	return out, nil
}

// held returns the resource in whose version a write has its objects, nil for the stored
// one: custom resources stay as the client addresses them.
func held(a *admission.Attributes) *kinds.Resource {
	if a.Resource.WorksAsServed() {
		return a.Resource
	}
	return nil
}

// through converts an object via the stored version. in is the resource whose version it has, nil for the stored one;
// from converts the result, nil to keep the stored version.
func through(obj kinds.Object, in *kinds.Resource, from func(kinds.Object) (kinds.Object, error), to *kinds.Resource) (kinds.Object, error) {
	if in != nil && to != nil && in.GVK() == to.GVK() {
		return obj, nil
	}
	copied := false
	if in != nil && in.ToStorage != nil {
		stored, err := in.ToStorage(obj.DeepCopyObject().(kinds.Object))
		if err != nil {
			return nil, err
		}
		obj, copied = stored, true
	}
	if from == nil {
		return obj, nil
	}
	if !copied {
		obj = obj.DeepCopyObject().(kinds.Object)
	}
	return from(obj)
}

// Back converts an object from the target's version to that of the write. It may reuse the object.
func (t Target) Back(a *admission.Attributes, obj kinds.Object) (kinds.Object, error) {
	home := held(a)
	gvk := a.Resource.GVK()
	if home == nil && a.Resource.Storage != nil {
		gvk = a.Resource.Storage.GVK
	}
	var from func(kinds.Object) (kinds.Object, error)
	if home != nil {
		from = home.FromStorage
	}
	out, err := through(obj, t.Resource, from, home)
	if err != nil {
		return nil, fmt.Errorf("unable to convert from %v: %w", t.Kind, err)
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}
