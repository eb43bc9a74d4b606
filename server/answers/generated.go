package answers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
)

// Generated answers with objects that were made for the request and are not stored: whole is the object or the
// list, and rows are the objects for rows of tables.
func (a *Answers) Generated(q *Request, as codecs.Form, code int, rows []kinds.Object, whole runtime.Object) error {
	switch {
	case as.IsTable():
		t := &metav1.Table{ColumnDefinitions: columnsOf(q.Resource), Rows: make([]metav1.TableRow, len(rows))}
		if l, err := meta.ListAccessor(whole); err == nil {
			t.ResourceVersion, t.Continue = l.GetResourceVersion(), l.GetContinue()
		}
		for i, obj := range rows {
			t.Rows[i].Cells = q.Resource.Columns.Cells(obj, a.now())
		}
		return a.table(q, as, code, t, rows...)
	case as.IsPartialList() && meta.IsListType(whole):
		out := &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 0, len(rows))}
		out.SetGroupVersionKind(as.As)
		if l, err := meta.ListAccessor(whole); err == nil {
			out.ResourceVersion, out.Continue = l.GetResourceVersion(), l.GetContinue()
		}
		for _, obj := range rows {
			out.Items = append(out.Items, *madePartial(as, obj))
		}
		return a.encode(q, as, code, out)
	}
	return a.Object(q, as, code, whole)
}

// table answers with a table of objects, whose rows get the part of their object that the request wants.
func (a *Answers) table(q *Request, as codecs.Form, code int, t *metav1.Table, objs ...kinds.Object) error {
	include, err := table.ParseInclude(q.Scope.Info.Query.Get("includeObject"))
	if err != nil {
		return err
	}
	for i, obj := range objs {
		switch include {
		case table.Metadata:
			t.Rows[i].Object.Object = madePartial(as, obj)
		case table.Object:
			t.Rows[i].Object.Object = obj
		}
	}
	t.SetGroupVersionKind(as.As)
	return a.encode(q, as, code, t)
}

// madePartial returns the metadata of an object.
func madePartial(as codecs.Form, obj metav1.Object) *metav1.PartialObjectMetadata {
	out := meta.AsPartialObjectMetadata(obj)
	out.SetGroupVersionKind(as.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return out
}
