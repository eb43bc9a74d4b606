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
	return h.answer(c, form, http.StatusCreated, out)
}

// answer sends the object that a write stored or, in a dry run, would have stored; or the object that an update deleted by
// removing its last finalizer.
func (h *Handler) answer(c *Call, form form, code int, out *writes.Outcome) error {
	if out.Item != nil {
		return h.Answers.Item(&c.Request, form, code, out.Item)
	}
	return h.Answers.Ended(&c.Request, form, code, out.Object)
}
