package verbs

import "github.com/rowlock/rowlock/sqlstore"

// Waiting counts the writers in the queue of a key.
func Waiting(h *Handler, key sqlstore.Key) int { return h.Writes.Waiting(key) }
