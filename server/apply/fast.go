package apply

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

// maxUpdaters is how many entries of ordinary writes an object keeps before the
// oldest are put together.
const maxUpdaters = 10

// fast does what exact.update does with the plan of obj's type. It reports false,
// and has changed nothing, if the case is not a frequent one.
func (o *Ownership) fast(r *kinds.Resource, sub string, old, obj kinds.Object, entries []metav1.ManagedFieldsEntry, manager string, now time.Time) (bool, error) {
	a, b := reflect.ValueOf(old), reflect.ValueOf(obj)
	if r.Custom || a.Type() != b.Type() || !usual(entries, r.APIVersion()) {
		return false, nil
	}
	plan, err := o.plans.of(o.schemas, r, b.Type().Elem(), resetFields(r, sub))
	if err != nil {
		return false, err
	}
	if plan.form != formStruct {
		return false, nil
	}
	memory := scratches.Get().(*scratch)
	defer memory.release()
	c := comparer{scratch: memory}
	changes, err := c.changes(plan, a.Elem(), b.Elem())
	if err != nil {
		return false, nil
	}
	if len(changes) == 0 {
		obj.SetManagedFields(entries)
		return true, nil
	}
	out, ok := adjust(entries, changes, r.APIVersion(), sub, manager, now, memory)
	if ok {
		obj.SetManagedFields(out)
	}
	return ok, nil
}

// usual tells entries that this package wrote for one version of a kind.
func usual(entries []metav1.ManagedFieldsEntry, version string) bool {
	for i := range entries {
		e := &entries[i]
		if e.APIVersion != version || e.FieldsType != "FieldsV1" || e.FieldsV1 == nil ||
			(e.Operation != metav1.ManagedFieldsOperationUpdate && e.Operation != metav1.ManagedFieldsOperationApply) {
			return false
		}
	}
	return true
}

// adjust takes changed paths from all entries and gives those that are set to manager.
func adjust(entries []metav1.ManagedFieldsEntry, changes []branch, version, sub, manager string, now time.Time, memory *scratch) ([]metav1.ManagedFieldsEntry, bool) {
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	gains := anyOwned(changes)
	found, updaters := false, 0
	for i := range entries {
		e := entries[i]
		mine := gains && e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == sub
		if !mine && !mentions(e.FieldsV1.Raw, changes) {
			if e.Operation == metav1.ManagedFieldsOperationUpdate {
				updaters++
			}
			out = append(out, e)
			continue
		}
		set, err := parseFieldSet(e.FieldsV1.Raw, memory)
		if err != nil {
			return nil, false
		}
		touched := disown(set, changes)
		if mine {
			found = true
			set, touched = unite(set, changes), true
			e.Time = timestamp(now)
		}
		if touched {
			if !anyOwned(set) {
				continue
			}
			e.FieldsV1 = &metav1.FieldsV1{Raw: appendFieldSet(make([]byte, 0, len(e.FieldsV1.Raw)+64), set)}
		}
		if e.Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
		out = append(out, e)
	}
	if gains && !found {
		updaters++
		out = append(out, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, Subresource: sub,
			Time: timestamp(now), FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: appendFieldSet(make([]byte, 0, 256), changes)},
		})
	}
	if updaters > maxUpdaters {
		return nil, false
	}
	slices.SortFunc(out, compareEntries)
	if len(out) == 0 {
		out = nil
	}
	return out, true
}

// mentions tells whether an encoded set may hold one of the changed paths.
func mentions(raw []byte, changes []branch) bool {
	for i := range changes {
		if bytes.Contains(raw, []byte(changes[i].element)) {
			return true
		}
	}
	return false
}

func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Subresource, b.Subresource),
	)
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// sameEntries tells whether a client sent back the entries it read.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		if x.FieldsV1 == nil || y.FieldsV1 == nil {
			return false
		}
		return x.Manager == y.Manager && x.Operation == y.Operation && x.APIVersion == y.APIVersion &&
			x.FieldsType == y.FieldsType && x.Subresource == y.Subresource && x.Time.Equal(y.Time) &&
			bytes.Equal(x.FieldsV1.Raw, y.FieldsV1.Raw)
	})
}
