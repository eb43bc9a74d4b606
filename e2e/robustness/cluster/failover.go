//go:build unix

package cluster

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Failover is a way for a standby of PostgreSQL to take over.
type Failover struct {
	Hangs   bool // the primary keeps its connections open, and is killed after the promotion; otherwise it is killed before
	Loses   bool // the standby lacks the last commits, which waited for no standby; otherwise it is synchronous
	Returns bool // later the former primary is started again, and for a time servers find it in the place of the new one

	Heard func()             // waits until every server knows whether commits wait for a standby
	Pause func()             // is called between the steps
	Use   func() error       // has every server use its database
	Found func(found uint64) // receives the newest revision of the standby
}

// Failover makes a standby, takes the primary away, and promotes the standby.
func (c *Cluster) Failover(f Failover) error {
	ctx := context.Background()
	old := c.Postgres()
	standby, err := old.Standby(ctx)
	if err != nil {
		return fmt.Errorf("making a standby: %w", err)
	}
	c.pgMu.Lock()
	c.spare = standby
	c.pgMu.Unlock()
	if f.Loses {
		if err := standby.StopReplication(ctx, old); err != nil {
			return fmt.Errorf("cutting a standby off: %w", err)
		}
		c.losing.Store(true)
		defer c.losing.Store(false)
	}
	f.Heard()
	if f.Hangs {
		old.Suspend()
	} else {
		old.Crash()
	}
	f.Pause()
	if err := standby.Promote(ctx); err != nil {
		return fmt.Errorf("promoting a standby: %w", err)
	}
	if f.Found != nil {
		found, err := newest(ctx, standby.URL(c.dbName))
		if err != nil {
			return fmt.Errorf("reading the newest revision of a standby: %w", err)
		}
		f.Found(found)
	}
	c.pgMu.Lock()
	c.pg, c.spare, c.url = standby, old, standby.URL(c.dbName)
	c.pgMu.Unlock()
	for _, n := range c.nodes {
		n.back.Retarget(standby.Port)
	}
	if f.Hangs {
		f.Pause()
		old.Crash()
	}
	if f.Loses || f.Returns {
		err = f.Use()
	}
	if err == nil && f.Returns {
		err = c.comesBack(ctx, f)
	}
	old.Stop()
	c.pgMu.Lock()
	c.spare = nil
	c.pgMu.Unlock()
	return err
}

// comesBack starts the former primary, and has servers find it for a time.
func (c *Cluster) comesBack(ctx context.Context, f Failover) error {
	old, now := c.spare, c.pg
	if err := old.Run(ctx); err != nil {
		return fmt.Errorf("starting a former primary: %w", err)
	}
	if err := now.StopReplication(ctx, old); err != nil { // it waits for no standby
		return fmt.Errorf("starting a former primary: %w", err)
	}
	lead := func(port int) {
		for _, n := range c.nodes {
			n.back.Retarget(port)
			n.back.CloseConnections()
		}
	}
	lead(old.Port)
	f.Pause()
	lead(now.Port)
	return nil
}

func newest(ctx context.Context, url string) (found uint64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT number FROM kv_meta WHERE key = 'revision'`).Scan(&found)
	return found, err
}
