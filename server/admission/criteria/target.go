package criteria

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// Kin knows which resources are the same objects in other versions, or by another
// name.
type Kin struct {
	catalogue *kinds.Catalogue
	known     atomic.Pointer[families]
}

type families struct {
	generation uint64
	of         map[string][]*kinds.Resource // by storage, where there are several
}

// NewKin makes a Kin of a catalogue, which it follows.
func NewKin(c *kinds.Catalogue) *Kin { return &Kin{catalogue: c} }

// Of lists the resources that are served from r's storage, but for r itself.
func (k *Kin) Of(r *kinds.Resource) []*kinds.Resource {
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

// Kind is the kind of the body of a resource, or of one of its subresources.
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

// Whole says whether the body of a write is the stored object, and not a kind of its
// own such as a Scale.
func Whole(a *admission.Attributes) bool {
	return a.Subresource == "" || Kind(a.Resource, a.Subresource) == a.Resource.GVK()
}

// Show gives an object of a write as the target has it. The result must not be
// changed; it is nil where there is no object.
func (t Target) Show(a *admission.Attributes, obj runtime.Object) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	stored, ok := obj.(kinds.Object)
	if ok && Whole(a) && t.Resource.FromStorage != nil {
		shown, err := t.Resource.FromStorage(stored.DeepCopyObject().(kinds.Object))
		if err != nil {
			return nil, fmt.Errorf("unable to convert to %v: %w", t.Kind, err)
		}
		shown.GetObjectKind().SetGroupVersionKind(t.Kind)
		return shown, nil
	}
	if obj.GetObjectKind().GroupVersionKind() == t.Kind {
		return obj, nil
	}
	shown := obj.DeepCopyObject()
	shown.GetObjectKind().SetGroupVersionKind(t.Kind)
	return shown, nil
}
