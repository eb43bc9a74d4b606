package storetest

import (
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// NewShared returns an empty database in memory that another server, which does nothing, has open: no driver is exclusive.
func NewShared() *memory.Database {
	db := memory.New(memory.Config{})
	db.Open()
	return db
}

// newModel returns the driver that others are compared with.
func newModel() *memory.Driver { return memory.New(memory.Config{}).Open() }

func boundsOf(t testing.TB, d sqlstore.Driver) sqlstore.Bounds {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatalf("Bounds: %v", err)
	}
	return b
}
