package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxEntries limits the entries of managedFields that are read, newest first.
const maxEntries = 100

// Entries reads the managedFields of an object, a tree of JSON: the newest first. It omits invalid entries.
func Entries(object map[string]any) []*metav1.ManagedFieldsEntry {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	var entries []*metav1.ManagedFieldsEntry
	for _, item := range list {
		e := new(metav1.ManagedFieldsEntry)
		if data, err := json.Marshal(item); err == nil && json.Unmarshal(data, e) == nil {
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b *metav1.ManagedFieldsEntry) int { return timeOf(b).Compare(timeOf(a)) })
	return entries[:min(len(entries), maxEntries)]
}

func timeOf(e *metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}

// identity identifies an entry.
type identity struct{ manager, operation, subresource, apiVersion string }

func identify(e *metav1.ManagedFieldsEntry) identity {
	return identity{e.Manager, string(e.Operation), e.Subresource, e.APIVersion}
}

// Wrote finds the entries that a write created or updated: those that are new, or have another time than before. An entry
// that only lost fields to another manager keeps its time. Times have a resolution of a second: if no entry is new, Wrote
// returns the newest entries that own one of the changed fields.
func Wrote(before, after []*metav1.ManagedFieldsEntry, changed []Field) []Manager {
	known := make(map[identity]*metav1.ManagedFieldsEntry, len(before))
	for _, e := range before {
		known[identify(e)] = e
	}
	var found []Manager
	for _, e := range after {
		old := known[identify(e)]
		if old == nil || !timeOf(old).Equal(timeOf(e)) {
			found = append(found, managerOf(e))
		}
	}
	if len(found) > 0 || len(after) == 0 {
		return found
	}
	newest := timeOf(after[0])
	for _, e := range after {
		if !timeOf(e).Equal(newest) {
			break
		}
		o := NewOwners([]*metav1.ManagedFieldsEntry{e})
		if slices.ContainsFunc(changed, func(f Field) bool { return f.Op != Remove && o.Of(f.Path) != "" }) || !sameFields(known[identify(e)], e) {
			found = append(found, managerOf(e))
		}
	}
	return found
}

func sameFields(a, b *metav1.ManagedFieldsEntry) bool {
	if a == nil || a.FieldsV1 == nil || b.FieldsV1 == nil {
		return false
	}
	return bytes.Equal(a.FieldsV1.Raw, b.FieldsV1.Raw)
}

func managerOf(e *metav1.ManagedFieldsEntry) Manager {
	return Manager{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource, Time: e.Time}
}

// Owners finds the managers that own a field of an object.
type Owners struct {
	list  []owner
	steps int // that were taken to find out
}

// maxSteps limits the look-ups of path elements for one object: a thousand fields of usual depth among a hundred
// managers. A thousand deep ones would take seconds.
const maxSteps = 1 << 20

type owner struct {
	manager string
	set     *fieldpath.Set
}

// NewOwners reads entries, the newest first. Entries that cannot be read own nothing.
func NewOwners(entries []*metav1.ManagedFieldsEntry) *Owners {
	o := &Owners{}
	for _, e := range entries {
		set := &fieldpath.Set{}
		if e.FieldsV1 == nil || set.FromJSON(bytes.NewReader(e.FieldsV1.Raw)) != nil {
			continue
		}
		o.list = append(o.list, owner{e.Manager, set})
	}
	return o
}

// How a manager owns a field, from the closest to the loosest.
const (
	exactly = iota + 1
	above   // it owns something that holds the field
	below   // it owns something that the field holds
)

// Of returns the owner of a field: the owner of exactly that field, otherwise of a parent, otherwise of a
// part; of several the last writer. "" for none, and after too many calls.
func (o *Owners) Of(path fieldpath.Path) string {
	best, manager := 0, ""
	for i := range o.list {
		if o.steps > maxSteps {
			return ""
		}
		how := o.owns(o.list[i].set, path)
		if how != 0 && (best == 0 || cmp.Less(how, best)) {
			best, manager = how, o.list[i].manager
		}
	}
	return manager
}

func (o *Owners) owns(set *fieldpath.Set, path fieldpath.Path) int {
	how := 0
	for i, e := range path {
		o.steps++
		if set.Members.Has(e) {
			how = above
			if i == len(path)-1 {
				return exactly
			}
		}
		children, ok := set.Children.Get(e)
		if !ok {
			return how
		}
		set = children
	}
	if how == 0 && !set.Empty() {
		return below
	}
	return how
}
