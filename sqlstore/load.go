package sqlstore

import (
	"context"
	"errors"
	"iter"
)

// ErrNotEmpty: a database that should be filled has content.
var ErrNotEmpty = errors.New("store not empty")

// Loader is a Driver that can be filled from a backup.
type Loader interface {
	// Load fills an empty database in one transaction: with the rows as they are,
	// revisions and times included, and with the content's bounds and cluster id.
	// After an error, or a crash, the database is as empty as before.
	// Errors: ErrNotEmpty if anything was ever written, and those of Rows.
	Load(ctx context.Context, content Content) error
}

// Content is what a database holds: rows in any order that together are right
// for the bounds. Rows that ended by the head carry Superseded.
type Content struct {
	Bounds    Bounds
	Past      map[string]int64 // Floors.Past
	ClusterID string           // empty: keep the database's own
	Rows      iter.Seq2[Row, error]
}

// Floors are those of the content.
func (c *Content) Floors() Floors { return Floors{Log: c.Bounds.Floor, Past: c.Past} }
