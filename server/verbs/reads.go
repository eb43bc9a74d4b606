package verbs

import (
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/status"
)

func (h *Handler) get(c *Call) error              { return status.NotAllowed() }
func (h *Handler) list(c *Call) error             { return status.NotAllowed() }
func (h *Handler) watch(c *Call) error            { return status.NotAllowed() }
func (h *Handler) deleteCollection(c *Call) error { return status.NotAllowed() }

// sendItem answers with a stored object.
func (h *Handler) sendItem(c *Call, form codecs.Form, code int, item *cache.Item) error {
	if form.Type == codecs.JSON && form.As.Kind == "" && c.Resource.FromStorage == nil {
		return h.write(c, form, code, item.JSON)
	}
	obj, err := h.served(c.Resource, item)
	if err != nil {
		return err
	}
	return h.send(c, form, code, obj)
}
