//go:build unix

package cluster

import (
	"context"
	"fmt"
)

// Failover makes a synchronous standby of PostgreSQL, takes the primary away after a pause, and promotes the standby after
// another. A primary that hangs keeps its connections open, and is killed after the promotion: it never answers again.
func (c *Cluster) Failover(hangs bool, before, between func()) error {
	ctx := context.Background()
	old := c.Postgres()
	standby, err := old.Standby(ctx)
	if err != nil {
		return fmt.Errorf("making a standby: %w", err)
	}
	c.pgMu.Lock()
	c.spare = standby
	c.pgMu.Unlock()
	before()
	if hangs {
		old.Freeze()
	} else {
		old.Crash()
	}
	between()
	if err := standby.Promote(ctx); err != nil {
		return fmt.Errorf("promoting a standby: %w", err)
	}
	c.pgMu.Lock()
	c.pg, c.spare, c.url = standby, old, standby.URL(c.dbName)
	c.pgMu.Unlock()
	for _, n := range c.nodes {
		n.back.Retarget(standby.Port)
	}
	if hangs {
		between()
		old.Crash()
	}
	old.Stop()
	c.pgMu.Lock()
	c.spare = nil
	c.pgMu.Unlock()
	return nil
}
