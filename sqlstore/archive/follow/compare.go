package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// Comparison holds the differences between two databases at one revision.
type Comparison struct {
	Objects     int64        `json:"objects"`     // of the first one
	Count       int64        `json:"count"`       // of differences
	Differences []Difference `json:"differences"` // the first hundred
}

// Difference is an object that is not the same in both.
type Difference struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Compare compares the objects of two databases as of a revision. Errors: those of reading, such as
// CompactedError.
func Compare(ctx context.Context, restored, with sqlstore.Driver, revision int64) (Comparison, error) {
	c := Comparison{Differences: []Difference{}}
	a, stopA := iter.Pull2(snapshot(ctx, restored, revision))
	defer stopA()
	b, stopB := iter.Pull2(snapshot(ctx, with, revision))
	defer stopB()
	x, errX, moreX := a()
	y, errY, moreY := b()
	for moreX || moreY {
		if err := errors.Join(errX, errY); err != nil {
			return c, fmt.Errorf("comparing: %w", err)
		}
		order := 0
		switch {
		case !moreY:
			order = -1
		case !moreX:
			order = 1
		default:
			order = x.Key.Compare(y.Key)
		}
		switch {
		case order < 0:
			c.add(x.Key, "is in the backup alone")
		case order > 0:
			c.add(y.Key, "is missing in the backup")
		default:
			c.rows(&x, &y)
		}
		if order <= 0 {
			c.Objects++
			x, errX, moreX = a()
		}
		if order >= 0 {
			y, errY, moreY = b()
		}
	}
	return c, nil
}

func (c *Comparison) add(key sqlstore.Key, reason string) {
	if c.Count++; len(c.Differences) < 100 {
		c.Differences = append(c.Differences, Difference{key.String(), reason})
	}
}

func (c *Comparison) rows(x, y *sqlstore.Row) {
	switch {
	case x.Revision != y.Revision || x.Created != y.Created:
		c.add(x.Key, fmt.Sprintf("is at revision %d (created at %d) in the backup, at %d (created at %d) in the database", x.Revision, x.Created, y.Revision, y.Created))
	case !bytes.Equal(x.Value, y.Value):
		c.add(x.Key, fmt.Sprintf("has another value at revision %d", x.Revision))
	case x.WrittenAt.UnixMicro() != y.WrittenAt.UnixMicro() || x.ExpiresAt.UnixMicro() != y.ExpiresAt.UnixMicro():
		c.add(x.Key, fmt.Sprintf("has other times at revision %d", x.Revision))
	}
}

// snapshot yields the objects of a database as of a revision, in the order of their keys.
func snapshot(ctx context.Context, d sqlstore.Driver, revision int64) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		enough := errors.New("enough differences")
		err := upkeep.Snapshot(ctx, d, revision, func(rows []sqlstore.Row) error {
			for _, row := range rows {
				if !yield(row, nil) {
					return enough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(sqlstore.Row{}, err)
		}
	}
}
