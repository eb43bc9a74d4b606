package apply

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
)

// Ownership keeps metadata.managedFields: who owns which field of an object. It is
// safe for concurrent use.
type Ownership struct {
	schemas *schema.Schemas
	plans   plans
	exact   exact
}

// New makes an Ownership for the kinds of schemas' catalogue.
func New(schemas *schema.Schemas) *Ownership {
	return &Ownership{schemas: schemas, exact: exact{schemas: schemas}}
}

// AfterCreate sets the managed fields of an object that is about to be created:
// manager owns all it holds. Entries that the client sent are kept as far as they
// make sense. sub is "" or the subresource that the request went to.
func (o *Ownership) AfterCreate(r *kinds.Resource, sub string, obj kinds.Object, manager string, now time.Time) error {
	return o.AfterUpdate(r, sub, r.New(), obj, manager, now)
}

// AfterUpdate sets the managed fields of obj, which is about to replace old: manager
// owns what differs, and others lose it. A write that changes nothing changes no
// entry. Entries in obj that differ from those of old are the client's wish: one
// empty entry clears the record, an empty list or none leaves it as it is.
//
// Both objects are of r's version. old is not changed, but may be encoded. The error
// is about values that no ownership can be computed for; obj is then left without
// managed fields and may be stored so.
func (o *Ownership) AfterUpdate(r *kinds.Resource, sub string, old, obj kinds.Object, manager string, now time.Time) error {
	if manager == "" {
		manager = "unknown"
	}
	wanted, known := obj.GetManagedFields(), false
	if sub != "" || len(wanted) == 0 || sameEntries(wanted, old.GetManagedFields()) {
		wanted, known = old.GetManagedFields(), true
	} else if isReset(wanted) {
		wanted, known = nil, true
	}
	if len(wanted) == 0 && old.GetUID() != "" {
		// Ownership of this object was given up; the next apply takes it up again.
		obj.SetManagedFields(nil)
		return nil
	}
	if known && sub != "scale" {
		if done, err := o.fast(r, sub, old, obj, wanted, manager, now); done || err != nil {
			return err
		}
	}
	obj.SetManagedFields(wanted)
	if s := r.Sub(sub); s != nil && s.Scale != nil {
		return o.scaleUpdate(r, s.Scale, old, obj, manager)
	}
	if err := o.exact.update(r, sub, old, obj, manager, now); err != nil {
		obj.SetManagedFields(nil)
		return err
	}
	return nil
}

// isReset tells the list by which a client clears the record.
func isReset(entries []metav1.ManagedFieldsEntry) bool {
	if len(entries) != 1 {
		return false
	}
	e := entries[0]
	return e.Manager == "" && e.Operation == "" && e.APIVersion == "" && e.Time == nil &&
		e.FieldsType == "" && e.FieldsV1 == nil && e.Subresource == ""
}

// stamp gives entries that the merge library dated itself the time now, and keeps
// the times of entries it left alone.
func stamp(before, after []metav1.ManagedFieldsEntry, now time.Time) {
	type identity struct {
		manager, version, sub string
		op                    metav1.ManagedFieldsOperationType
	}
	id := func(e *metav1.ManagedFieldsEntry) identity {
		version := e.APIVersion
		if e.Operation == metav1.ManagedFieldsOperationApply {
			version = "" // an applier is one manager whatever version it applies
		}
		return identity{e.Manager, version, e.Subresource, e.Operation}
	}
	times := make(map[identity]*metav1.Time, len(before))
	for i := range before {
		times[id(&before[i])] = before[i].Time
	}
	for i := range after {
		e := &after[i]
		if old, ok := times[id(e)]; e.Time != nil && (!ok || !e.Time.Equal(old)) && e.Manager != ancientManager {
			e.Time = timestamp(now)
		}
	}
	slices.SortFunc(after, compareEntries)
}

// ancientManager collects the oldest entries of objects with too many updaters.
const ancientManager = "ancient-changes"

func timestamp(now time.Time) *metav1.Time {
	return &metav1.Time{Time: now.UTC().Truncate(time.Second)}
}

// resetFields are the paths that writes through an endpoint cannot own.
func resetFields(r *kinds.Resource, sub string) []string {
	if sub == "" {
		if r.Storage == nil {
			return nil
		}
		return r.Storage.ResetFields
	}
	if s := r.Sub(sub); s != nil && s.Update != nil {
		return s.Update.ResetFields
	}
	return nil
}
