package discovery

// Together reports whether the aggregated document of the last state that was made is put together.
func Together(h *Handler) bool { return h.current.Load().named.is.Load() }
