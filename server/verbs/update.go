package verbs

import (
	"net/http"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
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
	req := c.Write(options, options.FieldManager, options.DryRun)
	read := func(s codecs.Strictness) (kinds.Object, error) {
		obj := c.Resource.New()
		if err := h.decode(c, from, body, c.Resource.GVK(), obj, s); err != nil {
			return nil, err
		}
		if err := writes.MatchPath(req, obj); err != nil {
			return nil, err
		}
		writes.WarnOwners(req, obj)
		return writes.Incoming(c.Resource, obj)
	}
	first, err := read(strictness(options.FieldValidation))
	if err != nil {
		return err
	}
	out, err := h.Writes.Update(c.R.Context(), req, &writes.Change{
		UID:       first.GetUID(),
		Pinned:    first.GetResourceVersion() != "",
		MayCreate: c.Sub == nil && c.Resource.Storage.CreateOnUpdate,
		First:     first,
		Compute:   func(kinds.Object, *cache.Item) (kinds.Object, error) { return read(codecs.Ignore) },
	})
	if err != nil {
		return err
	}
	return h.answer(c, form, updateCode(out), out)
}

// updateCode returns the status code of an update, which may have created the object.
func updateCode(out *writes.Outcome) int {
	if out.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}
