//go:build unix

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	leadEnds  = 3 * time.Second // after which a server that is stopped has lost what it leads
	leadMoves = 5 * time.Second // within which other servers usually have that
	// leadTaken is the time within which a server takes a lead that no server has, however busy the machine is.
	leadTaken = time.Minute
	leadLooks = 200 * time.Millisecond
)

func leads() []Fault {
	return []Fault{{Name: "leads", What: "each server in turn is stopped by SIGSTOP, until others have what it led; then each lead must have a server", Store: "postgres", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
		o := outcome{server: -1}
		moved, wrong, err := e.moveLeads(context.WithoutCancel(ctx))
		o.what = fmt.Sprintf("each server in turn sleeps until it has lost what it leads, of %d leads", moved)
		o.wrong, o.err = wrong, err
		return o
	}}}
}

// moveLeads takes all leads away from one server after the other. wrong names the leads that no server has in the end, although one had
// them before.
func (e *env) moveLeads(ctx context.Context) (moved int, wrong string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var before map[string]time.Duration
	if err := e.until(ctx, func() (err error) {
		before, err = e.c.Leads(ctx)
		return err
	}); err != nil {
		return 0, "", fmt.Errorf("reading the leads: %w", err)
	}
	var names []string
	for name, left := range before {
		if left > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i := range e.c.Len() {
		if err := e.c.Signal(i, syscall.SIGSTOP); err != nil {
			return len(names), "", err
		}
		time.Sleep(leadEnds)
		_, err := e.untaken(ctx, names, leadMoves)
		if woken := e.c.Signal(i, syscall.SIGCONT); err == nil {
			err = woken
		}
		if err != nil {
			return len(names), "", err
		}
	}
	time.Sleep(leadEnds) // by now the term of a server that was stopped has ended
	left, err := e.untaken(ctx, names, leadTaken)
	if len(left) > 0 && err == nil {
		wrong = fmt.Sprintf("no server takes a lead in %s, after each of them was stopped for some seconds: %s", leadTaken, strings.Join(left, ", "))
	}
	return len(names), wrong, err
}

// untaken waits until each of some leads has a server, or for some time, and returns those that have none.
func (e *env) untaken(ctx context.Context, names []string, long time.Duration) (left []string, err error) {
	for began := time.Now(); ; time.Sleep(leadLooks) {
		now, err := e.c.Leads(ctx)
		left = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return now[name] > 0 })
		if err == nil && len(left) == 0 || time.Since(began) > long {
			return left, err
		}
	}
}
