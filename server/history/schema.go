package history

import "github.com/rowlock/rowlock/server/schema/merging"

// Schema describes how a value merges: above all, the key fields of list items. The zero Schema is unknown:
// items are identified by their index.
type Schema = merging.Schema
