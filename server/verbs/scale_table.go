package verbs

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

// sendScale answers with a scale as the client wants to see it.
func (h *Handler) sendScale(c *Call, form codecs.Form, code int, s *autoscalingv1.Scale) error {
	switch {
	case form.IsTable():
		t, err := h.scaleTable(c, form, s)
		if err != nil {
			return err
		}
		return h.send(c, form, code, t)
	case form.IsPartialList():
		return codecs.NotAcceptableTransform(form.As, false, "*autoscaling.Scale")
	case form.IsPartial():
		return h.send(c, form, code, scaleMetadata(form, s))
	}
	return h.send(c, form, code, s)
}

func scaleMetadata(form codecs.Form, s *autoscalingv1.Scale) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: s.ObjectMeta}
	m.SetGroupVersionKind(form.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return m
}

func (h *Handler) scaleTable(c *Call, form codecs.Form, s *autoscalingv1.Scale) (*metav1.Table, error) {
	include, err := table.ParseInclude(c.Info.Query.Get("includeObject"))
	if err != nil {
		return nil, err
	}
	row := metav1.TableRow{Cells: []any{
		s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), columns.Since(s.CreationTimestamp, h.now()),
	}}
	switch include {
	case table.Metadata:
		row.Object = runtime.RawExtension{Object: scaleMetadata(form, s)}
	case table.Object:
		row.Object = runtime.RawExtension{Object: s}
	}
	t := &metav1.Table{ColumnDefinitions: scaleColumns, Rows: []metav1.TableRow{row}}
	t.SetGroupVersionKind(form.As)
	t.ResourceVersion = s.ResourceVersion
	return t, nil
}
