package verbs

import "github.com/rowlock/rowlock/server/status"

func (h *Handler) deleteCollection(c *Call) error { return status.NotAllowed() }
