package writes

import (
	"bytes"
	"errors"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rowlock/rowlock/server/kinds"
)

// ownScale records the manager of a number of replicas as clients of a Scale see it: there zero is no value
// and has no owner, and a field without an owner is not tracked.
func (w *Writer) ownScale(req *Request, obj, old kinds.Object) error {
	m := req.Sub.Scale
	if !ownsPath(old, m.ReplicasPath) {
		obj.SetManagedFields(old.GetManagedFields())
		return nil
	}
	if err := w.Owner.AfterUpdate(req.Resource, req.sub(), old, obj, req.Manager, w.Clock()); err != nil {
		return err
	}
	if n, _ := m.Replicas(obj); n == 0 {
		return dropOwnership(obj, m.ReplicasPath)
	}
	return nil
}

func fieldPath(path []string) fieldpath.Path {
	var out fieldpath.Path
	for i := range path {
		out = append(out, fieldpath.PathElement{FieldName: &path[i]})
	}
	return out
}

// ownsPath reports whether a manager owns a field.
func ownsPath(obj kinds.Object, path []string) bool {
	for _, e := range obj.GetManagedFields() {
		if set, err := fieldsOf(&e); err == nil && set.Has(fieldPath(path)) {
			return true
		}
	}
	return false
}

func fieldsOf(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(bytes.NewReader(e.FieldsV1.Raw))
}

// dropOwnership removes a field from all managers.
func dropOwnership(obj kinds.Object, path []string) error {
	entries := obj.GetManagedFields()
	kept := entries[:0]
	for _, e := range entries {
		set, err := fieldsOf(&e)
		if err != nil {
			return err
		}
		if set.Has(fieldPath(path)) {
			set = set.Difference(fieldpath.NewSet(fieldPath(path)))
			if set.Empty() {
				continue
			}
			raw, err := set.ToJSON()
			if err != nil {
				return err
			}
			e.FieldsV1 = &metav1.FieldsV1{Raw: raw}
		}
		kept = append(kept, e)
	}
	obj.SetManagedFields(kept)
	return nil
}

// clearTimes removes the times of fields that are owned through a Scale, which has none.
func clearTimes(obj kinds.Object, sub string) {
	entries := obj.GetManagedFields()
	for i := range entries {
		if entries[i].Subresource == sub {
			entries[i].Time = nil
		}
	}
	obj.SetManagedFields(entries)
}

// asScale rewrites the conflict of an apply for a client of a Scale.
func asScale(req *Request, err error) error {
	var st *apierrors.StatusError
	if !errors.As(err, &st) || !apierrors.IsConflict(err) || st.ErrStatus.Details == nil {
		return err
	}
	out := st.ErrStatus.DeepCopy()
	from, to := " using "+req.Resource.APIVersion(), " using "+autoscalingv1.SchemeGroupVersion.String()
	out.Message = strings.ReplaceAll(out.Message, from, to)
	for i := range out.Details.Causes {
		out.Details.Causes[i].Message = strings.ReplaceAll(out.Details.Causes[i].Message, from, to)
	}
	return &apierrors.StatusError{ErrStatus: *out}
}
