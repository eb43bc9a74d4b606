package sqlstore

import (
	"errors"
	"fmt"
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

// MaxRevision is the newest revision that a database may begin with, or go on behind. It leaves room for more writes than there
// can be: a counter that overflows would give revisions again that clients know.
const MaxRevision = 1 << 62

// CheckHeadroom returns an error unless later revisions have room behind one.
func CheckHeadroom(revision int64) error {
	if revision < 0 || revision > MaxRevision {
		return fmt.Errorf("revision %d leaves no room for later ones: it must be from 0 to %d", revision, int64(MaxRevision))
	}
	return nil
}

// Floors returns the floors of the content.
func (c *Content) Floors() Floors {
	return Floors{Log: c.Bounds.Floor, Past: c.Past, Skipped: c.Skipped}
}
