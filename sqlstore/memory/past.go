package memory

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// Rows stay as they are: values that share memory with neighboring rows cost little. So Pack only deletes old
// rows.

// kept returns the oldest revisions that can be read.
func (c *content) kept() sqlstore.Floors {
	if c.floors.Log != c.bounds.Floor { // trimmed since
		return sqlstore.Floors{Log: c.bounds.Floor}
	}
	return c.floors
}

// Floors implements sqlstore.Driver.
func (d *Driver) Floors(ctx context.Context) (sqlstore.Floors, error) {
	c, err := d.look(ctx)
	if err != nil {
		return sqlstore.Floors{}, fmt.Errorf("reading floors: %w", err)
	}
	return c.kept(), nil
}

// Retain implements sqlstore.Driver.
func (d *Driver) Retain(ctx context.Context, to sqlstore.Floors) (next sqlstore.Floors, err error) {
	err = d.change(ctx, func(c *content) error {
		next = c.kept().Raised(to, c.bounds.Head)
		c.floors, c.bounds.Floor = next, next.Log
		return nil
	})
	if err != nil {
		return next, fmt.Errorf("raising the floors: %w", err)
	}
	return next, nil
}

// Pack implements sqlstore.Driver.
func (d *Driver) Pack(ctx context.Context, from sqlstore.Cursor, limit int) (done sqlstore.Packed, err error) {
	err = d.change(ctx, func(c *content) error {
		floors := c.kept()
		var old []*sqlstore.Row
		seen := 0
		done.Done = true
		c.past.Ascend(&sqlstore.Row{Key: from.Key, Revision: from.Revision}, func(r *sqlstore.Row) bool {
			done.Next = sqlstore.Cursor{Key: r.Key, Revision: r.Revision}
			if r.Superseded <= floors.Of(r.Key.Resource) {
				old = append(old, r)
			}
			seen++
			done.Done = seen < stride && len(old) < limit
			return done.Done
		})
		for _, r := range old {
			c.past.Delete(r)
			c.bytes -= weight(r)
		}
		done.Deleted = len(old)
		return nil
	})
	if err != nil {
		return done, fmt.Errorf("packing: %w", err)
	}
	return done, nil
}

// Forget implements sqlstore.Driver: there are no packs, but there is a log of revisions that are gone.
func (d *Driver) Forget(ctx context.Context, limit int) (int, error) {
	err := d.change(ctx, func(c *content) error {
		for n := 0; n < max(limit, stride) && c.trimmed < c.kept().Lowest(); n++ {
			c.trimmed++
			c.log.Delete(&sqlstore.Row{Revision: c.trimmed})
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("forgetting: %w", err)
	}
	return 0, nil
}

// Older implements sqlstore.Driver.
func (d *Driver) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) (found []sqlstore.Row, err error) {
	c, err := d.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}
	floors := c.kept()
	start := &sqlstore.Row{Key: after.Key, Revision: after.Revision + 1}
	c.past.Ascend(start, func(r *sqlstore.Row) bool {
		if r.Superseded <= upTo && r.Superseded > floors.Of(r.Key.Resource) && len(found) < limit {
			found = append(found, copyForCaller(r))
		}
		return len(found) < limit
	})
	return found, nil
}
