// Package controllers lists the control loops that run inside the API server, so that it works without a
// controller manager, and selects which of them run. Each group of them is a package below this one; they are
// built from package reconcile.
//
// Controllers change objects only through the API, so that admission, finalizers and grace periods apply to
// them as to any other client.
package controllers

import (
	"cmp"
	"context"
	"slices"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// Loop is the work of a controller, for a server to run until ctx ends.
type Loop struct {
	Name       string
	EachServer bool // it runs on every server; others run on one at a time
	Run        func(ctx context.Context) error
}

// Loops returns the running controllers, in the order of the table, after the loop that determines whether those
// with switches are on standby.
func Loops(h Host, c Config) []Loop {
	if c.Runs == nil {
		c.Runs = Selection{}.Runs
	}
	var list []Loop
	standby, waits := &reconcile.Standby{Base: h.base(""), Lease: cmp.Or(c.ManagerLease, reconcile.DefaultManagerLease), Metrics: h.Metrics}, false
	for _, k := range all {
		if k.build == nil || !k.chosen(&c) {
			continue
		}
		run := k.build(&h, &c)
		if run == nil {
			continue
		}
		run = h.Metrics.Shown(k.shownAs(c), run)
		if len(k.switches) > 0 && !c.NeverStandby {
			work := run
			run, waits = func(ctx context.Context) error { return standby.While(ctx, work) }, true
		}
		list = append(list, Loop{Name: k.name, EachServer: k.eachServer, Run: run})
	}
	if waits {
		list = append([]Loop{{Name: "standby", EachServer: true, Run: standby.Run}}, list...)
	}
	return list
}

// chosen reports whether a controller, or a part of its work, is enabled.
func (k *controller) chosen(c *Config) bool {
	if len(k.switches) == 0 {
		return c.Runs(k.name)
	}
	return slices.ContainsFunc(k.switches, c.Runs)
}

// shownAs returns the name of a controller in metrics: as in stock components that of its first enabled switch, if
// it has any.
func (k *controller) shownAs(c Config) string {
	for _, on := range k.switches {
		if !c.Runs(on) {
			continue
		}
		for long, short := range longNames {
			if short == on {
				return long
			}
		}
		return on
	}
	return k.name
}
