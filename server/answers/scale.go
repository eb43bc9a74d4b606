package answers

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
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
		t := &metav1.Table{ColumnDefinitions: scaleColumns, Rows: []metav1.TableRow{{Cells: []any{
			s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), columns.Since(s.CreationTimestamp, a.now()),
		}}}}
		if !q.Resource.HasGoType() {
			t.ColumnDefinitions = customScaleColumns
		}
		t.ResourceVersion = s.ResourceVersion
		return a.table(q, as, code, t, s)
	case as.IsPartialList():
		if q.Resource.HasGoType() {
			return codecs.NotAcceptableTransform(as.As, false, "*autoscaling.Scale")
		}
		return codecs.NotAcceptableTransform(as.As, false, "*v1.Scale")
	case as.IsPartial():
		return a.encode(q, as, code, madePartial(as, s))
	}
	return a.encode(q, as, code, s)
}
