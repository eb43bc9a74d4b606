package memory

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// stride is the number of revisions that are removed before writers have their turn.
const stride = 1000

// Trim implements sqlstore.Driver. It follows the log: the rows that a revision ended are deleted with it,
// and the log drops a revision once the floor has passed it.
func (d *Driver) Trim(ctx context.Context, to int64, limit int) (deleted int, err error) {
	for more := true; more; {
		err = d.change(ctx, func(next *content) error {
			if more = to > next.bounds.Floor || next.kept().Past == nil; !more { // the rest is kept
				return nil
			}
			if floor := min(to, next.bounds.Head); floor > next.bounds.Floor {
				next.bounds.Floor = floor
				if row, ok := next.log.Get(&sqlstore.Row{Revision: floor}); ok {
					next.mark = mark{floor, row.WrittenAt}
				}
			}
			for range stride {
				if more = next.trimmed < next.bounds.Floor && deleted < limit; !more {
					return nil
				}
				deleted += next.trim(limit - deleted)
			}
			return nil
		})
		if err != nil {
			return deleted, fmt.Errorf("trimming to %d: %w", to, err)
		}
	}
	return deleted, nil
}

// trim deletes up to limit rows that the first revision of the log has ended: the row it
// took the place of, and its own if that marks a delete. Once nothing of
// that is left, the revision is trimmed.
func (c *content) trim(limit int) (deleted int) {
	row, ok := c.log.Get(&sqlstore.Row{Revision: c.trimmed + 1})
	if !ok {
		c.trimmed++
		return 0
	}
	if old := c.before(&row.Key, row.Revision-1); old != nil && old.Superseded == row.Revision {
		c.past.Delete(old)
		c.bytes -= weight(old)
		deleted++
	}
	if row.Deleted {
		if deleted == limit {
			return deleted
		}
		c.past.Delete(row)
		c.bytes -= weight(row)
		deleted++
	}
	c.log.Delete(row)
	c.trimmed++
	return deleted
}
