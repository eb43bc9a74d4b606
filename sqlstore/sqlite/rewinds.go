package sqlite

import "github.com/rowlock/rowlock/sqlstore"

// A file goes back only while no server has it open: Healthy notices that another file has replaced it, and a server that
// starts reads everything.

// RewindCount implements sqlstore.Log.
func (*Driver) RewindCount() int64 { return 0 }

// Rewinds implements sqlstore.Log.
func (*Driver) Rewinds() sqlstore.Rewinds { return sqlstore.Rewinds{} }

// RewindNotices implements sqlstore.Log.
func (*Driver) RewindNotices() <-chan struct{} { return nil }
