package admission

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Writes are the writes that a plugin of one resource handles.
type Writes struct {
	Plugin      string // its name
	Operations  []Operation
	Group       string
	Plural      string
	Subresource string // "": of the object itself
}

// Name implements Plugin.
func (w Writes) Name() string { return w.Plugin }

// Handles implements Plugin.
func (w Writes) Handles(op Operation) bool { return slices.Contains(w.Operations, op) }

// written returns the objects of a write that w is about; old is zero where there is none of the type.
func written[T runtime.Object](w Writes, a *Attributes) (obj, old T, ok bool) {
	obj, ok = a.Object.(T)
	old, _ = a.Old.(T)
	return obj, old, ok && a.Is(w.Group, w.Plural, w.Subresource)
}

// Check is a validating plugin of one resource, whose objects are of the type T.
type Check[T runtime.Object] struct {
	Writes
	// Refuse returns why a write is refused.
	Refuse func(ctx context.Context, a *Attributes, obj, old T) error
}

// Validate implements Validator.
func (c Check[T]) Validate(ctx context.Context, a *Attributes) error {
	obj, old, ok := written[T](c.Writes, a)
	if !ok {
		return nil
	}
	return c.Refuse(ctx, a, obj, old)
}

// Change is a mutating plugin of one resource, whose objects are of the type T.
type Change[T runtime.Object] struct {
	Writes
	// Apply changes the object of a write.
	Apply func(ctx context.Context, obj T) error
}

// Admit implements Mutator.
func (c Change[T]) Admit(ctx context.Context, a *Attributes) error {
	obj, _, ok := written[T](c.Writes, a)
	if !ok {
		return nil
	}
	return c.Apply(ctx, obj)
}

// Protection is a mutating plugin that gives new objects the finalizer of their resource, so that none is deleted
// while others use it.
type Protection struct {
	Plugin     string // its name
	Finalizers map[schema.GroupResource]string
}

// Name implements Plugin.
func (p Protection) Name() string { return p.Plugin }

// Handles implements Plugin.
func (Protection) Handles(op Operation) bool { return op == Create }

// Admit implements Mutator.
func (p Protection) Admit(_ context.Context, a *Attributes) error {
	finalizer, protected := p.Finalizers[a.Resource.GroupResource()]
	m := a.Meta()
	if !protected || a.Subresource != "" || m == nil || slices.Contains(m.GetFinalizers(), finalizer) {
		return nil
	}
	m.SetFinalizers(append(slices.Clone(m.GetFinalizers()), finalizer))
	return nil
}
