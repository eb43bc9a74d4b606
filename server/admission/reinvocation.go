package admission

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Reinvocations holds what a mutating plugin remembers between its two passes: which calls to repeat because the object
// has changed since.
type Reinvocations struct {
	seen, again map[string]bool
	output      runtime.Object // at the end of a run, if a webhook or policy has reinvocation policy IfNeeded
}

// ReinvocationsOf finds those of a plugin and begins its next run. There are none where the first
// run called none: then none is called now.
func ReinvocationsOf(a *Attributes, plugin string) *Reinvocations {
	r, _ := a.Remembered(plugin).(*Reinvocations)
	switch {
	case r == nil && a.Second():
		return nil
	case r == nil:
		r = &Reinvocations{seen: map[string]bool{}, again: map[string]bool{}}
		a.Remember(plugin, r)
	case a.Second() && r.output != nil && !apiequality.Semantic.DeepEqual(r.output, a.Object):
		r.Changed() // by other plugins
	}
	return r
}

// Changed records a change of the object: webhooks and policies that ran before it run again.
func (r *Reinvocations) Changed() {
	for id := range r.seen {
		r.again[id] = true
	}
	clear(r.seen)
}

// Invoked records a call of a webhook or policy that runs again if the object changes.
func (r *Reinvocations) Invoked(id string) { r.seen[id] = true }

// Runs reports whether a webhook or policy runs in this run: in the first each does, in the second only those that ran
// before a change of the object and have reinvocation policy IfNeeded.
func (r *Reinvocations) Runs(a *Attributes, id string) bool { return !a.Second() || r.again[id] }

// End ends a run.
func (r *Reinvocations) End(a *Attributes) {
	if !a.Second() && len(r.seen)+len(r.again) > 0 && a.Object != nil {
		r.output = a.Object.DeepCopyObject()
	}
}

// GuardFields records the field owners of an object. The returned function restores the owners if they have
// been damaged.
func (a *Attributes) GuardFields() (check func()) {
	m := a.Meta()
	if m == nil {
		return func() {}
	}
	before := m.GetManagedFields()
	return func() {
		if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil {
			m.SetManagedFields(before)
			a.Warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
		}
	}
}
