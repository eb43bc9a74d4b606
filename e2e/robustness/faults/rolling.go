//go:build unix

package faults

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Upgrade restarts the servers, one after the other, with the flags of another release, so that servers of both releases share the
// database for some time. It records that as a fault that keeps servers from running.
func Upgrade(c *cluster.Cluster, rec *history.Recorder, args []string, to cluster.Release) error {
	f := &history.Fault{Name: "upgrade", What: "the servers become, one after the other, those of release " + to.String(), Server: -1, Begin: rec.Now(), Store: true}
	c.SetArgs(args)
	wrong, err := roll(context.Background(), c)
	f.End, f.Wrong = rec.Now(), wrong
	rec.Add(f)
	if err != nil {
		return fmt.Errorf("upgrading to release %s: %w", to, err)
	}
	return nil
}

// roll stops each server with SIGTERM and starts it again, one after the other, until ctx ends. A server must finish the request that it
// reads.
func roll(ctx context.Context, c *cluster.Cluster) (wrong string, err error) {
	for i := range c.Len() {
		unanswered := newInFlight(c, i).answered(i, func() {
			if err := c.Stop(i); err != nil {
				wrong = fmt.Sprintf("server %d did not end well after SIGTERM: %v", i, err)
			}
		})
		wrong = cmp.Or(wrong, unanswered)
		if err := c.StartServer(context.Background(), i); err != nil || ctx.Err() != nil {
			return wrong, err
		}
	}
	return wrong, nil
}
