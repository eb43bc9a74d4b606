package verbs

// list answers with a collection, or a page of it.
func (h *Handler) list(c *Call) error {
	if err := h.Answers.AcceptsList(&c.Request); err != nil {
		return err
	}
	o, err := h.parseList(c, false)
	if err != nil {
		return err
	}
	form, err := h.Answers.NegotiateList(&c.Request)
	if err != nil {
		return err
	}
	if err := readSelectors(c, o); err != nil {
		return err
	}
	o.Everywhere = func() (bool, error) { return h.everywhere(c) }
	p, err := h.Objects.List(c.Context(), c.Permit(), c.Resource, o)
	if err != nil {
		return err
	}
	return h.Answers.Page(&c.Request, form, p)
}
