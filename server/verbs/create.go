package verbs

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/writes"
)

// create serves POST of a collection.
func (h *Handler) create(c *Call) error {
	if c.Resource.Ending && !h.Catalogue.Release().Has(release.ForbiddenCreates) {
		err := apierrors.NewMethodNotSupported(c.Resource.GroupResource(), "create")
		err.ErrStatus.Message = writes.EndingText
		return err
	}
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	obj := c.Resource.New()
	options, err := h.readCreate(c, c.Resource.GVK(), obj)
	if err != nil {
		return err
	}
	req := c.Write(options, options.FieldManager, options.DryRun)
	out, err := h.Writes.Create(c.R.Context(), req, obj)
	if err != nil {
		return err
	}
	return h.Answers.Written(&c.Request, form, http.StatusCreated, out.Item, out.Object)
}
