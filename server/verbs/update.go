package verbs

import (
	"net/http"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/writes"
)

// update serves PUT of an object.
func (h *Handler) update(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	from, body, options, err := h.readUpdate(c)
	if err != nil {
		return err
	}
	read := func(s codecs.Strictness) (kinds.Object, error) {
		obj := c.Resource.New()
		return obj, h.decode(c, from, body, c.Resource.GVK(), obj, s)
	}
	obj, err := read(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	req := c.Write(options, options.FieldManager, options.DryRun)
	out, err := h.Writes.Replace(c.R.Context(), req, obj, func() (kinds.Object, error) { return read(codecs.Ignore) })
	if err != nil {
		return err
	}
	return h.Answers.Written(&c.Request, form, updateCode(out), out.Item, out.Object)
}

// updateCode returns the status code of an update, which may have created the object.
func updateCode(out *writes.Outcome) int {
	if out.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
