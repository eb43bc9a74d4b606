package writes

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
)

var forLabels = permits.OfServer("the labels of namespaces")

// checkLabel refuses a field that needs a label on the namespace of the object, as all servers have written it: the label is a
// right.
func (w *Writer) checkLabel(ctx context.Context, req *Request, s *kinds.Strategy, obj, old kinds.Object) (field.ErrorList, error) {
	if s.NeedsLabel == nil {
		return nil, nil
	}
	p, label, detail := s.NeedsLabel(obj, old)
	if p == nil {
		return nil, nil
	}
	if err := w.Objects.CatchUp(ctx); err != nil {
		return nil, err
	}
	item, err := w.Objects.Namespace(ctx, forLabels, req.Namespace)
	if err != nil {
		return nil, err
	}
	if item != nil && item.Meta().Labels.Get(label) == "true" {
		return nil, nil
	}
	return field.ErrorList{field.Forbidden(p, detail)}, nil
}
