package sqlstore

import (
	"errors"
	"iter"
)

// ErrNotEmpty: a database to be filled has content.
var ErrNotEmpty = errors.New("store not empty")

// Content is the content of a database: rows in any order that are consistent with the bounds. Rows that ended by
// the head have Superseded.
type Content struct {
	Bounds    Bounds
	Past      map[string]int64 // Floors.Past
	Skipped   []Skipped        // Floors.Skipped
	ClusterID string           // empty: keep the database's own
	Rows      iter.Seq2[Row, error]
}

// Floors returns the floors of the content.
func (c *Content) Floors() Floors {
	return Floors{Log: c.Bounds.Floor, Past: c.Past, Skipped: c.Skipped}
}
