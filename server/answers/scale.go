package answers

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

var scaleColumns = []metav1.TableColumnDefinition{
	columns.Text("Name", metav1.ObjectMeta{}.SwaggerDoc()["name"]),
	columns.Number("Desired", autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]),
	columns.Number("Available", autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]),
	columns.Age(),
}

// customScaleColumns are the columns of the scale of a custom resource.
var customScaleColumns = []metav1.TableColumnDefinition{
	columns.Name(),
	columns.Number("Desired", "Number of desired replicas"),
	columns.Number("Available", "Number of actual replicas"),
	{Name: "Age", Type: "date", Description: columns.Age().Description},
}

// Scale answers with a scale, which is not stored but has columns.
func (a *Answers) Scale(q *Request, as codecs.Form, code int, s *autoscalingv1.Scale) error {
	switch {
	case as.IsTable():
		t, err := a.scaleTable(q, as, s)
		if err != nil {
			return err
		}
		return a.encode(q, as, code, t)
	case as.IsPartialList():
		if q.Resource.HasGoType() {
			return codecs.NotAcceptableTransform(as.As, false, "*autoscaling.Scale")
		}
		return codecs.NotAcceptableTransform(as.As, false, "*v1.Scale")
	case as.IsPartial():
		return a.encode(q, as, code, scaleMetadata(as, s))
	}
	return a.encode(q, as, code, s)
}

func scaleMetadata(as codecs.Form, s *autoscalingv1.Scale) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: s.ObjectMeta}
	m.SetGroupVersionKind(as.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return m
}

func (a *Answers) scaleTable(q *Request, as codecs.Form, s *autoscalingv1.Scale) (*metav1.Table, error) {
	include, err := table.ParseInclude(q.Scope.Info.Query.Get("includeObject"))
	if err != nil {
		return nil, err
	}
	row := metav1.TableRow{Cells: []any{
		s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), columns.Since(s.CreationTimestamp, a.now()),
	}}
	switch include {
	case table.Metadata:
		row.Object = runtime.RawExtension{Object: scaleMetadata(as, s)}
	case table.Object:
		row.Object = runtime.RawExtension{Object: s}
	}
	t := &metav1.Table{ColumnDefinitions: scaleColumns, Rows: []metav1.TableRow{row}}
	if !q.Resource.HasGoType() {
		t.ColumnDefinitions = customScaleColumns
	}
	t.SetGroupVersionKind(as.As)
	t.ResourceVersion = s.ResourceVersion
	return t, nil
}
