package verbs

import "github.com/rowlock/rowlock/server/watches"

// watch streams the changes of a collection or of one object. It stands on the stack of
// every watch whose handler stays: what comes before belongs into newWatch.
func (h *Handler) watch(c *Call) error {
	w, err := h.newWatch(c)
	if err != nil {
		return err
	}
	return w.Serve()
}

// newWatch reads what is to be watched, and in which form.
func (h *Handler) newWatch(c *Call) (none watches.Watch, err error) {
	if err := h.Answers.AcceptsList(&c.Request); err != nil {
		return none, err
	}
	o, err := h.parseList(c, true)
	if err != nil {
		return none, err
	}
	form, err := h.Answers.NegotiateWatch(&c.Request, !(o.InitialEvents() && o.AllowWatchBookmarks))
	if err != nil {
		return none, err
	}
	if err := readSelectors(c, o); err != nil {
		return none, err
	}
	if err := h.ofThisNamespace(c, o); err != nil {
		return none, err
	}
	return h.Watches.New(&c.Request, o, form)
}
