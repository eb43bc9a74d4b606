package answers

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
)

// Object answers with an object that is not stored, or with its metadata.
func (a *Answers) Object(q *Request, as codecs.Form, code int, obj runtime.Object) error {
	shown, err := metadataOf(q, as, obj)
	if err != nil {
		return err
	}
	return a.encode(q, as, code, shown)
}

// encode answers with an object that already has the kind of the form.
func (a *Answers) encode(q *Request, as codecs.Form, code int, obj runtime.Object) error {
	if st, ok := obj.(*metav1.Status); ok && q.Scope.Audit != nil {
		q.Scope.Audit.ResponseStatus(st)
	}
	data, err := a.Forms.Codec(as.Type).Encode(nil, obj)
	if err != nil {
		return err
	}
	if as.Type == codecs.JSON {
		data = append(data, '\n')
	}
	return a.body(q, as, code, data)
}

// metadataOf returns the metadata of an object if the form requests only that.
func metadataOf(q *Request, as codecs.Form, obj runtime.Object) (runtime.Object, error) {
	switch obj.(type) {
	case *metav1.Status, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return obj, nil
	}
	list := meta.IsListType(obj)
	switch {
	case as.IsPartial() && list, as.IsPartialList() && !list:
		return nil, codecs.NotAcceptableTransform(as.As, list, codecs.GoType(q.Resource.GVK(), !q.Resource.HasGoType(), list))
	case !as.IsPartial():
		return obj, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("showing the metadata of a %T: %w", obj, err)
	}
	return madePartial(as, m), nil
}

// Ended answers with an object that an update has deleted by removing its last finalizer. obj is in the
// working form.
func (a *Answers) Ended(q *Request, as codecs.Form, code int, obj kinds.Object) error {
	var row metav1.TableRow
	if as.IsTable() {
		row = a.endedRow(q.Resource, obj)
	}
	if !q.Resource.WorksAsServed() {
		obj.GetObjectKind().SetGroupVersionKind(q.Resource.Storage.GVK)
	}
	// Metadata is treated as for stored objects; see appendMetadata.
	var metadata *metav1.PartialObjectMetadata
	if q.Resource.HasGoType() && (as.IsTable() || as.IsPartial()) {
		metadata = madePartial(as, obj).DeepCopy()
		delete(metadata.Annotations, q.Resource.Storage.FieldAnnotation)
	}
	out, err := q.Resource.ToServed(obj)
	if err != nil {
		return err
	}
	switch {
	case as.IsPartial() && metadata != nil:
		return a.encode(q, as, code, metadata)
	case !as.IsTable():
		return a.Object(q, as, code, out)
	case metadata == nil:
		metadata = madePartial(as, out)
	}
	include, err := table.ParseInclude(q.Scope.Info.Query.Get("includeObject"))
	if err != nil {
		return err
	}
	switch include {
	case table.Metadata:
		row.Object.Object = metadata
	case table.Object:
		if row.Object.Raw, err = a.Forms.JSON.Append(nil, out); err != nil {
			return err
		}
	}
	t := &metav1.Table{ColumnDefinitions: columnsOf(q.Resource), Rows: []metav1.TableRow{row}}
	t.SetGroupVersionKind(as.As)
	t.ResourceVersion = out.GetResourceVersion()
	return a.encode(q, as, code, t)
}

func (a *Answers) endedRow(r *kinds.Resource, obj kinds.Object) (row metav1.TableRow) {
	if r.Columns.Cells == nil {
		row.Cells = []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}
		return row
	}
	row.Cells = r.Columns.Cells(obj, a.now())
	if r.Columns.Conditions != nil {
		row.Conditions = r.Columns.Conditions(obj)
	}
	return row
}
