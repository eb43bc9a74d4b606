package verbs

import (
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/objects"
)

// watch streams the changes of a collection or of one object. It stands on the stack of
// every open watch, so that what comes before belongs into a function of its own.
func (h *Handler) watch(c *Call) error {
	o, form, err := h.watchOptions(c)
	if err != nil {
		return err
	}
	return h.Watches.Serve(&c.Request, o, form)
}

// watchOptions reads what is to be watched, and in which form.
func (h *Handler) watchOptions(c *Call) (*objects.ListOptions, codecs.Form, error) {
	if err := h.Answers.AcceptsList(&c.Request); err != nil {
		return nil, codecs.Form{}, err
	}
	o, err := parseList(c, true)
	if err != nil {
		return nil, codecs.Form{}, err
	}
	form, err := h.Answers.NegotiateWatch(&c.Request, !(o.InitialEvents() && o.AllowWatchBookmarks))
	if err != nil {
		return nil, codecs.Form{}, err
	}
	return o, form, readSelectors(c, o)
}
