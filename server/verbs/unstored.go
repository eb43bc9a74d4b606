package verbs

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// virtual says that a call is about something that is never stored, and so has no
// columns: a review, a binding, a token.
func (c *Call) virtual() bool {
	if c.Sub != nil {
		return c.Sub.Update == nil && c.Sub.Scale == nil
	}
	return c.Resource.Storage == nil && !has(c.Resource, "list")
}

// metadataOf shows the metadata alone of an object that is no stored item, where the
// form asks for that.
func metadataOf(c *Call, form codecs.Form, obj runtime.Object) (runtime.Object, error) {
	switch obj.(type) {
	case *metav1.Status, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return obj, nil
	}
	list := meta.IsListType(obj)
	switch {
	case form.IsPartial() && list, form.IsPartialList() && !list:
		return nil, codecs.NotAcceptableTransform(form.As, list, codecs.GoType(c.Resource.GVK(), c.Resource.Custom, list))
	case !form.IsPartial():
		return obj, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("showing the metadata of a %T: %w", obj, err)
	}
	out := meta.AsPartialObjectMetadata(m)
	out.SetGroupVersionKind(form.As)
	return out, nil
}

// sendTrial answers with the object that a dry run would have stored, given in the
// stored version.
func (h *Handler) sendTrial(c *Call, form codecs.Form, code int, obj kinds.Object) error {
	var row metav1.TableRow
	if form.IsTable() {
		var err error
		if row, err = h.trialRow(c.Resource, obj); err != nil {
			return err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(c.Resource.Storage.GVK)
	out, err := objects.FromStored(c.Resource, obj)
	if err != nil {
		return err
	}
	if !form.IsTable() {
		shown, err := metadataOf(c, form, out)
		if err != nil {
			return err
		}
		return h.send(c, form, code, shown)
	}
	include, err := table.ParseInclude(c.Info.Query.Get("includeObject"))
	if err != nil {
		return err
	}
	switch include {
	case table.Metadata:
		m := meta.AsPartialObjectMetadata(out)
		m.SetGroupVersionKind(form.As.GroupVersion().WithKind("PartialObjectMetadata"))
		row.Object.Object = m
	case table.Object:
		if row.Object.Raw, err = jsoncodec.Append(nil, out); err != nil {
			return err
		}
	}
	t := &metav1.Table{ColumnDefinitions: defaultColumns, Rows: []metav1.TableRow{row}}
	if c.Resource.Columns.Cells != nil {
		t.ColumnDefinitions = c.Resource.Columns.Definitions
	}
	t.SetGroupVersionKind(form.As)
	t.ResourceVersion = out.GetResourceVersion()
	return h.send(c, form, code, t)
}

func (h *Handler) trialRow(r *kinds.Resource, obj kinds.Object) (row metav1.TableRow, err error) {
	if r.Columns.Cells == nil {
		row.Cells = []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}
		return row, nil
	}
	row.Cells = r.Columns.Cells(obj, h.now())
	if r.Columns.Conditions != nil {
		row.Conditions = r.Columns.Conditions(obj)
	}
	return row, nil
}
