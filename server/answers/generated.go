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
		include, err := table.ParseInclude(q.Scope.Info.Query.Get("includeObject"))
		if err != nil {
			return err
		}
		return a.encode(q, as, code, a.madeTable(q, as, include, rows, whole))
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

func (a *Answers) madeTable(q *Request, as codecs.Form, include table.Include, rows []kinds.Object, whole runtime.Object) *metav1.Table {
	out := &metav1.Table{ColumnDefinitions: columnsOf(q.Resource), Rows: make([]metav1.TableRow, 0, len(rows))}
	out.SetGroupVersionKind(as.As)
	if l, err := meta.ListAccessor(whole); err == nil {
		out.ResourceVersion, out.Continue = l.GetResourceVersion(), l.GetContinue()
	}
	for _, obj := range rows {
		row := metav1.TableRow{Cells: q.Resource.Columns.Cells(obj, a.now())}
		switch include {
		case table.Metadata:
			row.Object.Object = madePartial(as, obj)
		case table.Object:
			row.Object.Object = obj
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// madePartial returns the metadata of an object.
func madePartial(as codecs.Form, obj kinds.Object) *metav1.PartialObjectMetadata {
	out := meta.AsPartialObjectMetadata(obj)
	out.SetGroupVersionKind(as.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return out
}
