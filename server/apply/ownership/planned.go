package ownership

import (
	"bytes"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
	"github.com/rowlock/rowlock/server/schema"
)

// planned is the tracker that compares Go values in place, by plans: it makes only the paths of changes. It
// supports the frequent writes of built-in kinds, and returns fieldset.ErrUnsupported for all others.
type planned struct {
	schemas *schema.Schemas
	plans   fieldset.Plans
}

func (p *planned) track(w write) ([]metav1.ManagedFieldsEntry, error) {
	r := w.resource
	a, b := reflect.ValueOf(w.old), reflect.ValueOf(w.new)
	if !r.HasGoType() || a.Type() != b.Type() || !planEntries(w.entries, r.APIVersion()) {
		return nil, fieldset.ErrUnsupported
	}
	plan, err := p.plans.Of(p.schemas, b.Type().Elem(), resetFields(r, w.subresource))
	if err != nil {
		return nil, err
	}
	memory := fieldset.NewMemory()
	defer memory.Release()
	changes, err := plan.Changes(memory, a.Elem(), b.Elem())
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return w.entries, nil
	}
	return w.record(changes, memory)
}

// fewEntries is the number of entries up to which pairs are compared.
const fewEntries = 8

// planEntries reports whether plans can continue a record: all entries are for one version of
// the kind and complete, and no two are of one manager. Writes of a Scale leave such pairs, of
// which the library keeps one.
func planEntries(entries []metav1.ManagedFieldsEntry, version string) bool {
	for i := range entries {
		e := &entries[i]
		if e.APIVersion != version || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil ||
			(e.Operation != metav1.ManagedFieldsOperationUpdate && e.Operation != metav1.ManagedFieldsOperationApply) {
			return false
		}
	}
	return !repeated(entries)
}

// repeated reports whether two entries have the same identity.
func repeated(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) <= fewEntries {
		for i := range entries {
			for j := range i {
				if a, b := &entries[i], &entries[j]; a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && identityOf(a) == identityOf(b) {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[identity]bool, len(entries))
	for i := range entries {
		id := identityOf(&entries[i])
		if seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// record takes the changed paths from all entries, and gives those that were added or
// changed to the manager of the write.
func (w *write) record(changes fieldset.Set, memory *fieldset.Memory) ([]metav1.ManagedFieldsEntry, error) {
	out := make([]metav1.ManagedFieldsEntry, 0, len(w.entries)+1)
	gains := !changes.Empty()
	found := false
	for i := range w.entries {
		e := w.entries[i]
		mine := gains && e.Manager == w.manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == w.subresource
		if mine || changes.MayMention(e.FieldsV1.Raw) {
			keep, err := w.change(&e, mine, changes, memory)
			if err != nil {
				return nil, err
			}
			if !keep {
				continue
			}
		}
		found = found || mine
		out = append(out, e)
	}
	if gains && !found {
		out = append(out, metav1.ManagedFieldsEntry{
			Manager: w.manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: w.resource.APIVersion(), Subresource: w.subresource,
			Time: timestamp(w.now), FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: bytes.Clone(memory.Text(changes))},
		})
	}
	if countUpdaters(out) > maxUpdaters {
		return nil, fieldset.ErrUnsupported
	}
	sortEntries(out)
	if len(out) == 0 {
		out = nil
	}
	return out, nil
}

// change applies changes to one entry. mine means that the entry is that of the write's manager; keep is false
// for an entry that owns nothing any more.
func (w *write) change(e *metav1.ManagedFieldsEntry, mine bool, changes fieldset.Set, memory *fieldset.Memory) (keep bool, err error) {
	set, err := fieldset.Parse(e.FieldsV1.Raw, memory)
	if err != nil {
		return false, err
	}
	changed := set.Remove(changes)
	if mine {
		set, changed = set.Union(changes), true
		e.Time = timestamp(w.now)
	}
	if !changed {
		return true, nil
	}
	if set.Empty() {
		return false, nil
	}
	// A manager that writes the same fields again owns the same fields.
	if text := memory.Text(set); !bytes.Equal(text, e.FieldsV1.Raw) {
		e.FieldsV1 = &metav1.FieldsV1{Raw: bytes.Clone(text)}
	}
	return true, nil
}

func countUpdaters(entries []metav1.ManagedFieldsEntry) int {
	n := 0
	for i := range entries {
		if entries[i].Operation == metav1.ManagedFieldsOperationUpdate {
			n++
		}
	}
	return n
}
