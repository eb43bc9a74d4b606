package history

import "github.com/rowlock/rowlock/server/schema/merging"

// Schema is what a merge knows of a value: above all, which fields tell the items of a list
// apart. The zero Schema knows nothing: items are identified by their index.
type Schema = merging.Schema
