package sqlite

import "github.com/rowlock/rowlock/sqlstore"

// A file goes back only while no server has it open: Healthy notices that another file has replaced it, and a server that
// starts reads everything.

// Returned implements sqlstore.Log.
func (*Driver) Returned() int64 { return 0 }

// Returns implements sqlstore.Log.
func (*Driver) Returns() sqlstore.Returns { return sqlstore.Returns{} }

// Noticed implements sqlstore.Log.
func (*Driver) Noticed() <-chan struct{} { return nil }
