//go:build unix

package faults

import (
	"context"
	"fmt"
	"strings"
	"time"
)

func clocks() []Fault {
	return []Fault{{Name: "clock", What: "the wall clock of a server, or of all, is set ahead or back by hours, up to three times, and then right", Often: 3, run: func(ctx context.Context, e *env) outcome {
		servers := []int{e.server()}
		o := outcome{server: servers[0], clock: true}
		if e.rand.IntN(3) == 0 && e.c.Len() > 1 {
			servers, o.server = nil, -1
			for i := range e.c.Len() {
				servers = append(servers, i)
			}
		}
		set := func(ahead time.Duration) {
			for _, i := range servers {
				if err := e.c.SetClock(i, ahead); err != nil && o.absent == nil {
					o.absent = err
				}
			}
		}
		var steps []string
		for range 1 + e.rand.IntN(3) {
			ahead := time.Duration(2+e.rand.IntN(47)) * time.Hour
			if e.rand.IntN(2) == 0 {
				ahead = -ahead
			}
			if set(ahead); o.absent != nil {
				break
			}
			d := e.wait(ctx, 500*time.Millisecond, 5*time.Second)
			steps = append(steps, fmt.Sprintf("by %s for %s", ahead, d.Round(time.Millisecond)))
		}
		set(0)
		who := fmt.Sprintf("the clock of server %d", o.server)
		if o.server < 0 {
			who = "the clocks of all servers"
		}
		o.what = fmt.Sprintf("%s: %s", who, strings.Join(steps, ", "))
		return o
	}}}
}
