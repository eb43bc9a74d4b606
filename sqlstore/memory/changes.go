package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// Changes implements sqlstore.Driver.
func (d *Driver) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	c, err := d.look(ctx)
	if err == nil && after < c.bounds.Floor {
		err = &sqlstore.CompactedError{Revision: after, Floor: c.bounds.Floor}
	}
	if err != nil {
		return nil, fmt.Errorf("reading changes after %d: %w", after, err)
	}
	limit = int(min(int64(limit), c.bounds.Head-after))
	if limit <= 0 {
		return nil, nil
	}
	changes := make([]sqlstore.Change, 0, limit)
	size := 0
	c.log.Ascend(&sqlstore.Row{Revision: after + 1}, func(r *sqlstore.Row) bool {
		change := sqlstore.Change{Row: copyForCaller(r)}
		if r.Created != r.Revision {
			if old := c.before(&r.Key, r.Revision-1); old != nil && old.Superseded == r.Revision {
				change.PrevRevision = old.Revision
				if previous {
					change.PrevValue = bytes.Clone(old.Value)
				}
			}
		}
		changes = append(changes, change)
		size += change.Bytes()
		return len(changes) < limit && size < sqlstore.ChangesBytes
	})
	return changes, nil
}

// LastChanges implements sqlstore.Driver.
func (d *Driver) LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error) {
	c, err := d.look(ctx)
	if err == nil && after < c.bounds.Floor {
		err = &sqlstore.CompactedError{Revision: after, Floor: c.bounds.Floor}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the last changes up to %d: %w", upTo, err)
	}
	last := make(map[string]int64)
	c.log.Ascend(&sqlstore.Row{Revision: after + 1}, func(r *sqlstore.Row) bool {
		if r.Revision <= upTo {
			last[r.Key.Resource] = r.Revision
		}
		return r.Revision <= upTo
	})
	return last, nil
}
