//go:build unix

package faults

import (
	"context"
	"fmt"
	"time"
)

// disks are faults of the disk below SQLite.
func disks() []Fault {
	fault := func(name, what string, often int, run func(context.Context, *env) (string, error)) Fault {
		return Fault{Name: name, What: what, Store: "sqlite", Disk: true, Cuts: true, Often: often, run: func(ctx context.Context, e *env) outcome {
			done, err := run(ctx, e)
			return outcome{what: done, server: -1, err: err}
		}}
	}
	return []Fault{
		fault("power-loss", "the machine loses power: servers are killed, and pages that were not synced are lost, all or some", 5, func(ctx context.Context, e *env) (string, error) {
			pages, err := e.lose()
			return fmt.Sprintf("the power fails, and %d pages are lost", pages), err
		}),
		fault("sync-fails", "syncs fail; then the servers are started again, half of the times behind a power loss", 3, func(ctx context.Context, e *env) (string, error) {
			n := 1 + e.rand.IntN(3)
			if _, err := e.c.Disk().FailSyncs(n); err != nil {
				return "", err
			}
			e.wait(ctx, 300*time.Millisecond, 2*time.Second)
			left, err := e.c.Disk().FailSyncs(0)
			what := fmt.Sprintf("%d syncs fail", n-left)
			if err != nil {
				return what, err
			}
			if e.rand.IntN(2) == 0 {
				pages, err := e.lose()
				return fmt.Sprintf("%s, and behind them the power, with %d pages", what, pages), err
			}
			for i := range e.c.Len() {
				e.c.Kill(i)
			}
			return what, e.all()
		}),
		fault("slow-disk", "each sync takes up to half a second, for some seconds", 2, func(ctx context.Context, e *env) (string, error) {
			if err := e.c.Disk().Slow(500 * time.Millisecond); err != nil {
				return "", err
			}
			d := e.wait(ctx, time.Second, 4*time.Second)
			return fmt.Sprintf("the disk is slow for %s", d.Round(time.Millisecond)), e.c.Disk().Slow(0)
		}),
		fault("full-disk", "the disk is full for some seconds", 2, func(ctx context.Context, e *env) (string, error) {
			if err := e.c.Disk().Full(true); err != nil {
				return "", err
			}
			d := e.wait(ctx, 500*time.Millisecond, 4*time.Second)
			return fmt.Sprintf("the disk is full for %s", d.Round(time.Millisecond)), e.c.Disk().Full(false)
		}),
	}
}

// lose kills all servers, takes back pages that were not synced, and starts the servers.
func (e *env) lose() (pages int, err error) {
	for i := range e.c.Len() {
		e.c.Kill(i)
	}
	pages, err = e.c.Disk().Lose(e.rand.Uint64())
	if again := e.all(); err == nil {
		err = again
	}
	return pages, err
}

// all starts all servers.
func (e *env) all() (err error) {
	for i := range e.c.Len() {
		if again := e.again(i); err == nil {
			err = again
		}
	}
	return err
}
